package runlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var eraseCases = map[string]func(*bed){
	"erase/not found":      eraseNotFound,
	"erase/others":         eraseOthers,
	"erase/keep":           eraseKeep,
	"erase/inbox alone":    eraseInboxAlone,
	"erase/broken off":     eraseBroken,
	"erase/lost answer":    eraseLost,
	"erase/concurrently":   eraseConcurrently,
	"erase/same name":      eraseSameName,
	"erase/invalid name":   eraseInvalid,
	"erase/watched":        eraseWatched,
	"erase/kept, watched":  eraseKeptWatched,
	"erase/unacknowledged": eraseUnacknowledged,
	"erase/set timer":      eraseTimer,
	"erase/fired timer":    eraseFired,
	"erase/through":        eraseThrough,
	"erase/late":           eraseLate,
	"newest/leader":        newestKnows,
}

// fullRun is a run with records, items, and blobs, one of them large.
type fullRun struct {
	*chain
	items []uint64
	blobs []string
}

func (b *bed) newFullRun(run runlog.Run, records int) *fullRun {
	b.Helper()
	f := &fullRun{chain: &chain{bed: b, run: run}}
	f.grow(records)
	f.items = f.send(run, message("1", ""), message("2", ""), message("3", ""))
	for _, size := range []int{10, 1 << 20} {
		ref, err := b.log.PutBlob(b.ctx, run, noise(size))
		b.must(err)
		f.blobs = append(f.blobs, ref.GetDigest())
	}
	return f
}

// there fails unless all of it is stored.
func (f *fullRun) there() {
	f.Helper()
	f.whole()
	items, err := f.log.Inbox(f.ctx, f.run, 0, last(f.items))
	f.must(err)
	if len(items) != len(f.items) {
		f.Fatalf("%v has %d items, want %d", f.run, len(items), len(f.items))
	}
	for _, digest := range f.blobs {
		_, err := f.log.Blob(f.ctx, f.run, digest)
		f.must(err)
	}
}

// gone waits until nothing of it is found except the record with sequence keep.
func (f *fullRun) gone(keep uint64) {
	f.Helper()
	f.until("a run without what was erased", func() bool {
		view, err := f.log.View(f.ctx, f.run, keep)
		if keep == 0 {
			return errors.Is(err, runlog.ErrNotFound)
		}
		f.must(err)
		return view.Newest.Sequence == keep && view.InboxSequence == 0
	})
	f.until("an empty inbox", func() bool {
		last, err := f.log.LastInbox(f.ctx, f.run)
		f.must(err)
		return last == 0
	})
	for _, e := range f.entries {
		f.until(fmt.Sprint("a log without sequence ", e.Sequence), func() bool { return f.readable(e.Sequence) == (e.Sequence == keep) })
	}
	for i, sequence := range f.items {
		f.until(fmt.Sprint("an inbox without item ", i), func() bool {
			items, err := f.log.Inbox(f.ctx, f.run, sequence-1, sequence)
			return len(items) == 0 && errors.Is(err, runlog.ErrNotFound)
		})
	}
}

// noBlobs waits until its blobs are not found. An implementation may retry for a
// missing blob, so this takes seconds.
func (f *fullRun) noBlobs() {
	f.Helper()
	var wg sync.WaitGroup
	for _, digest := range f.blobs {
		wg.Go(func() {
			for {
				switch _, err := f.log.Blob(f.ctx, f.run, digest); {
				case err == nil: // from a replica that lags
				case errors.Is(err, runlog.ErrNotFound):
					return
				default:
					f.Errorf("a blob of an erased run: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// until repeats a read until it returns true: a replica that lags may still return erased
// messages.
func (b *bed) until(what string, read func() bool) {
	b.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for !read() {
		select {
		case <-again.C:
		case <-b.ctx.Done():
			b.Fatalf("there is still not %s", what)
		}
	}
}

// readable reports whether c's record at sequence is stored.
func (c *chain) readable(sequence uint64) bool {
	c.Helper()
	e, err := c.log.Read(c.ctx, c.run, sequence)
	if errors.Is(err, runlog.ErrNotFound) {
		return false
	}
	c.must(err)
	i := slices.IndexFunc(c.entries, func(own runlog.Entry) bool { return own.Sequence == sequence })
	c.same(e, c.entries[i])
	return true
}

func eraseNotFound(b *bed) {
	f := b.newFullRun(b.chain("r").run, 10)
	b.must(b.log.Erase(b.ctx, f.run, 0, runlog.Everything))
	f.gone(0)
	f.noBlobs()
	b.wantErr(watch(b.ctx, b.log, f.run, 0, func(runlog.Entry) error { return nil }, nil), runlog.ErrNotFound)
	b.must(b.log.Erase(b.ctx, f.run, 0, runlog.Everything)) // erasing a missing run is not an error
	b.must(b.log.Erase(b.ctx, f.run, f.newest(), runlog.Everything))
	b.must(b.log.Erase(b.ctx, b.chain("unknown").run, 0, runlog.Everything))
}

// eraseOthers checks that runs with similar names keep everything.
func eraseOthers(b *bed) {
	var others []*fullRun
	for _, run := range []runlog.Run{{Namespace: "suite", ID: "a-b"}, {Namespace: "suite", ID: "ab"}, {Namespace: "suite", ID: "A"}, {Namespace: "suite-a", ID: "a"}} {
		others = append(others, b.newFullRun(run, 6))
	}
	f := b.newFullRun(b.chain("a").run, 6)
	b.must(b.log.Erase(b.ctx, f.run, 0, runlog.Everything))
	f.gone(0)
	for _, other := range others {
		other.there()
	}
}

// eraseKeep checks that one record is kept, at any position, and erased later.
func eraseKeep(b *bed) {
	for name, i := range map[string]int{"first": 0, "middle": 4, "newest": 9} {
		f := b.newFullRun(b.chain(name).run, 10)
		keep := f.entries[i].Sequence
		for range 2 {
			b.must(b.log.Erase(b.ctx, f.run, keep, runlog.Everything))
			f.gone(keep)
			view, err := b.log.View(b.ctx, f.run, keep)
			b.must(err)
			b.same(view.Newest, f.entries[i])
		}
		f.noBlobs()
		_, err := b.log.Append(b.ctx, b.chain(name).next("repair"))
		b.wantErr(err, runlog.ErrFenced) // it reserves the name
		b.must(b.log.Erase(b.ctx, f.run, 0, runlog.Everything))
		f.gone(0)
	}
}

// eraseInboxAlone checks that an item that is stored after an erasure can be erased.
func eraseInboxAlone(b *bed) {
	f := b.newFullRun(b.chain("r").run, 3)
	b.must(b.log.Erase(b.ctx, f.run, 0, runlog.Everything))
	f.gone(0)
	f.items = b.send(f.run, message("late", ""))
	_, err := b.log.View(b.ctx, f.run, f.items[0])
	b.wantErr(err, runlog.ErrNotFound)
	b.must(b.log.Erase(b.ctx, f.run, 0, runlog.Everything))
	f.gone(0)
}

// eraseBroken checks that an interrupted erasure has deleted the oldest records and can
// be repeated.
func eraseBroken(b *bed) {
	for _, until := range []int{0, 1, 7, 20, 38} {
		f := b.newFullRun(b.chain(fmt.Sprint("r", until)).run, 40)
		ctx, cancel := context.WithCancel(b.ctx)
		ended := make(chan error, 1)
		go func() { ended <- b.log.Erase(ctx, f.run, 0, runlog.Everything) }()
		b.until("a record that is gone", func() bool { return !f.readable(f.entries[until].Sequence) })
		cancel()
		if err := recv(b, ended, "the end of the erasure"); err != nil {
			b.wantErr(err, runlog.ErrUnavailable)
		}
		b.until("a log without a gap", func() bool {
			left := false
			for _, e := range f.entries {
				there := f.readable(e.Sequence)
				if left && !there {
					return false
				}
				left = there
			}
			return true
		})
		b.must(b.log.Erase(b.ctx, f.run, 0, runlog.Everything))
		f.gone(0)
	}
	// Interrupted before the start.
	f := b.newFullRun(b.chain("r").run, 3)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	b.wantErr(b.log.Erase(ctx, f.run, 0, runlog.Everything), runlog.ErrUnavailable)
	f.there()
}

func eraseLost(b *bed) {
	faults := NewFaults(b.log)
	f := b.newFullRun(b.chain("r").run, 3)
	faults.loseWrites(1)
	b.wantErr(faults.Erase(b.ctx, f.run, 0, runlog.Everything), runlog.ErrUnavailable)
	f.there()
	faults.loseAcks(1)
	b.wantErr(faults.Erase(b.ctx, f.run, 0, runlog.Everything), runlog.ErrUnavailable)
	f.gone(0)
	b.must(faults.Erase(b.ctx, f.run, 0, runlog.Everything))
}

// eraseConcurrently checks that several callers may erase the same run.
func eraseConcurrently(b *bed) {
	f := b.newFullRun(b.chain("r").run, 30)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := b.log.Erase(b.ctx, f.run, f.newest(), runlog.Everything); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	f.gone(f.newest())
}

// eraseSameName checks that a run under the name of an erased one is another run.
func eraseSameName(b *bed) {
	old := b.newFullRun(b.chain("r").run, 10)
	b.must(b.log.Erase(b.ctx, old.run, 0, runlog.Everything))
	old.gone(0)
	f := b.newFullRun(old.run, 4) // the same ids of items, the same blobs
	if f.entries[0].Sequence <= old.newest() || f.items[0] <= last(old.items) {
		b.Fatalf("begins at %d and %d, the run before ended at %d and %d", f.entries[0].Sequence, f.items[0], old.newest(), last(old.items))
	}
	f.there()
	for _, e := range old.entries {
		b.until("a log without the run before", func() bool { return !old.readable(e.Sequence) })
	}
	_, err := b.log.Append(b.ctx, old.next("turn"))
	b.wantErr(err, runlog.ErrFenced)
	f.grow(20) // past the versions of the erased run
	f.there()
}

// eraseInvalid checks that a name that matches other runs is refused.
func eraseInvalid(b *bed) {
	f := b.newFullRun(b.chain("r").run, 3)
	for _, run := range []runlog.Run{{}, {Namespace: "suite"}, {Namespace: "suite", ID: "*"}, {Namespace: "suite", ID: ">"}, {Namespace: "*", ID: "r"}} {
		if err := b.log.Erase(b.ctx, run, 0, runlog.Everything); err == nil {
			b.Errorf("%v was erased", run)
		}
	}
	f.there()
}
