package runlogtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var watchCases = map[string]func(*bed){
	"watch/offsets":          watchOffsets,
	"watch/50 watchers":      watchMany,
	"watch/gaps":             watchGaps,
	"watch/interruption":     watchInterruption,
	"watch/errors":           watchErrors,
	"watch/slow handle":      watchSlow,
	"watch/bus away":         watchAway,
	"watch/away, fed":        watchAwayFed,
	"watch/away at start":    watchAwayAtStart,
	"watch/away permanently": watchAwayPermanently,
	"watch/not found":        watchNotFound,
}

var errEnough = errors.New("enough")

// watch follows a run without patience: it ends with the first ErrUnavailable.
func watch(ctx context.Context, log runlog.WatchSource, run runlog.Run, after uint64, handle func(runlog.Entry) error, caughtUp func() error) error {
	return runlog.Watcher{After: after, Handle: handle, CaughtUp: caughtUp}.Watch(ctx, log, run)
}

// watched follows a run up to version until and returns the records that it received.
func (c *chain) watched(log runlog.Log, after, until uint64, caughtUp func()) ([]runlog.Entry, error) {
	var got []runlog.Entry
	calls := 0
	err := watch(c.ctx, log, c.run, after, func(e runlog.Entry) error {
		got = append(got, e)
		if e.Header.Version >= until && calls > 0 {
			return errEnough
		}
		return nil
	}, func() error {
		if calls++; calls > 1 {
			c.Error("caught up twice")
		}
		caughtUp()
		if uint64(len(got))+after >= until {
			return errEnough
		}
		return nil
	})
	return got, err
}

// tail fails unless got is c's records after a version.
func (c *chain) tail(got []runlog.Entry, after uint64) {
	c.Helper()
	want := c.entries[after:]
	if len(got) != len(want) {
		c.Errorf("after %d: %d records, want %d", after, len(got), len(want))
		return
	}
	for i := range got {
		if got[i].Sequence != want[i].Sequence || got[i].Header != want[i].Header || got[i].Record == nil {
			c.Errorf("after %d: record %d is version %d at %d", after, i, got[i].Header.Version, got[i].Sequence)
		}
	}
}

// follow starts watchers at the given offsets, calls write when all have caught up, and
// compares what they received.
func (c *chain) follow(log runlog.Log, offsets []uint64, until uint64, write func()) {
	c.Helper()
	var ready, ended sync.WaitGroup
	got := make([][]runlog.Entry, len(offsets))
	for i, after := range offsets {
		ready.Add(1)
		ended.Go(func() {
			var err error
			if got[i], err = c.watched(log, after, until, ready.Done); !errors.Is(err, errEnough) {
				c.Error(err)
			}
		})
	}
	ready.Wait()
	write()
	ended.Wait()
	for i, after := range offsets {
		c.tail(got[i], after)
	}
}

func watchOffsets(b *bed) {
	c := b.chain("r")
	c.grow(20)
	c.follow(b.log, []uint64{0, 1, 2, 10, 19, 20}, 20, func() {})
	c.follow(b.log, []uint64{0, 1, 2, 10, 19, 20, 21, 25}, 40, func() { c.grow(20) })
}

func watchMany(b *bed) {
	c, other := b.chain("r"), b.chain("other")
	c.grow(1)
	offsets := make([]uint64, 50)
	for i := range offsets {
		offsets[i] = uint64(i % 2)
	}
	c.follow(b.log, offsets, 101, func() {
		for range 100 {
			c.grow(1)
			other.grow(1)
		}
	})
}

// watchGaps checks that a feed that drops two of three records causes no gap.
func watchGaps(b *bed) {
	c := b.chain("r")
	c.grow(1)
	faults := NewFaults(b.log)
	faults.DropFeed(func(e *runlog.Entry) bool { return e.Header.Version%3 != 0 })
	c.follow(faults, []uint64{0, 1}, 60, func() { c.grow(59) })
}

// watchInterruption checks that records that the feed dropped are delivered after its
// interruption.
func watchInterruption(b *bed) {
	c := b.chain("r")
	c.grow(1)
	faults := NewFaults(b.log)
	faults.DropFeed(func(*runlog.Entry) bool { return true })
	begun := time.Now()
	c.follow(faults, []uint64{0, 0, 1}, 21, func() {
		c.grow(20)
		faults.Interrupt()
	})
	if time.Since(begun) > 9*time.Second {
		b.Error("it was silence that healed the feed, not the interruption")
	}
}

func watchErrors(b *bed) {
	c := b.chain("r")
	err := watch(b.ctx, b.log, c.run, 0, func(runlog.Entry) error { return nil }, nil)
	b.wantErr(err, runlog.ErrNotFound)
	c.grow(3)
	n := 0
	err = watch(b.ctx, b.log, c.run, 0, func(runlog.Entry) error {
		n++
		return errEnough
	}, nil)
	b.wantErr(err, errEnough)
	if n != 1 {
		b.Fatalf("handle was called %d times, after its error too", n)
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	err = watch(ctx, b.log, c.run, 0, func(runlog.Entry) error { return nil }, func() error {
		cancel(errEnough)
		return nil
	})
	b.wantErr(err, errEnough)
}

// watchSlow checks that a slow handler, which makes the feed overflow, misses nothing.
func watchSlow(b *bed) {
	c := b.chain("r")
	c.grow(1)
	const until = 700
	begun, written := make(chan struct{}), make(chan struct{})
	var got []runlog.Entry
	ended := make(chan error, 1)
	go func() {
		ended <- watch(b.ctx, b.log, c.run, 1, func(e runlog.Entry) error {
			if len(got) == 0 {
				close(begun)
				<-written
			}
			if got = append(got, e); e.Header.Version == until {
				return errEnough
			}
			return nil
		}, func() error {
			begun <- struct{}{}
			return nil
		})
	}()
	recv(b, begun, "the start")
	c.grow(1)
	recv(b, begun, "the first record")
	c.grow(until - 3)
	close(written)
	c.grow(1) // reveals the gap
	b.wantErr(recv(b, ended, "the end"), errEnough)
	c.tail(got, 1)
}
