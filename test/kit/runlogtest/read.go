package runlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var readCases = map[string]func(*bed){
	"read/exact":     readExact,
	"read/backwards": readBack,
	"read/appended":  readAppended,
	"view/contains":  viewContains,
	"view/newest":    viewNewest,
	"view/nothing":   viewNothing,
	"view/ctx":       viewCtx,
	"newer/nothing":  newerNothing,
	"newer/any":      newerAny,
}

func readExact(b *bed) {
	c, other := b.chain("r"), b.chain("other")
	for range 5 {
		c.grow(2)
		other.grow(1)
	}
	item, _, err := b.log.AppendInbox(b.ctx, c.run, &harnessv1.InboxItem{Id: "i"}, 0)
	b.must(err)
	for _, e := range c.entries {
		got, err := b.log.Read(b.ctx, c.run, e.Sequence)
		b.must(err)
		b.same(got, e)
	}
	nowhere := map[string]uint64{"nothing": 0, "an input": item, "the future": item + 1000}
	for _, e := range other.entries { // sequences of another partition may be equal
		if !slices.ContainsFunc(c.entries, func(own runlog.Entry) bool { return own.Sequence == e.Sequence }) {
			nowhere["another run"] = e.Sequence
		}
	}
	for what, sequence := range nowhere {
		if _, err := b.log.Read(b.ctx, c.run, sequence); !errors.Is(err, runlog.ErrNotFound) {
			b.Errorf("reading %s: got %v, want %v", what, err, runlog.ErrNotFound)
		}
	}
}

// readAppended checks that the records that add to the conversation, messages or weights,
// are found by their links, and also past records without appended_before.
func readAppended(b *bed) {
	for name, says := range map[string]func(version uint64) bool{
		"all say":  func(uint64) bool { return true },
		"none do":  func(uint64) bool { return false },
		"some do":  func(v uint64) bool { return v%7 > 2 },
		"later do": func(v uint64) bool { return v > 20 },
	} {
		c := b.chain("r-" + strings.ReplaceAll(name, " ", "-"))
		var adding []runlog.Entry
		for v := uint64(1); v <= 40; v++ {
			rec := c.next("turn")
			if v%3 == 0 || v == 1 {
				rec.Appended = []*harnessv1.Message{{Id: v}}
			}
			weighs := v%5 == 0
			if weighs {
				rec.GetStep().Observed = []*harnessv1.Observation{{Value: &harnessv1.Observation_Weights{Weights: &harnessv1.Weights{FirstMessage: v, Tokens: []uint32{7}}}}}
			}
			if v > 1 && says(v) {
				rec.AppendedBefore = runlog.AppendedBefore(c.entries[v-2])
			}
			sequence, err := c.log.Append(c.ctx, rec)
			b.must(err)
			if e := c.stored(rec, sequence); len(rec.GetAppended()) > 0 || weighs {
				adding = append(adding, e)
			}
		}
		for from := 0; from < 40; from += 3 {
			for after := 0; after <= from; after += 5 {
				floor := uint64(0)
				if after > 0 {
					floor = c.entries[after-1].Sequence
				}
				got, err := runlog.BackAppended(b.ctx, b.log, c.entries[from], floor)
				b.must(err)
				var want []runlog.Entry
				for _, e := range adding {
					if e.Sequence > floor && e.Sequence <= c.entries[from].Sequence {
						want = append(want, e)
					}
				}
				if len(got) != len(want) {
					b.Fatalf("%s, from version %d after %d: %d records, want %d", name, from+1, after, len(got), len(want))
				}
				for i := range got {
					b.same(got[i], want[i])
				}
			}
		}
	}
}

func readBack(b *bed) {
	c := b.chain("r")
	c.grow(40)
	newest := c.entries[39]
	for _, after := range []uint64{0, 1, 17, 38, 39, 40, 50} {
		entries, err := runlog.Back(b.ctx, b.log, newest, after)
		b.must(err)
		want := c.entries[min(after, 40):]
		if len(entries) != len(want) {
			b.Fatalf("after %d: %d records, want %d", after, len(entries), len(want))
		}
		for i, e := range entries {
			b.same(e, want[i])
		}
	}
}

// viewContains checks that a view is never older than contains while records are
// appended.
func viewContains(b *bed) {
	c := b.chain("r")
	var wg sync.WaitGroup
	for range 100 {
		e := c.append([]string{"turn", ""}[c.version()%2])
		want := e
		wg.Go(func() {
			view, err := b.log.View(b.ctx, c.run, e.Sequence)
			if err != nil {
				b.Error(err)
				return
			}
			if view.Newest.Sequence < e.Sequence || view.Newest.Header.Version < want.Header.Version {
				b.Errorf("view that contains %d has version %d at %d", e.Sequence, view.Newest.Header.Version, view.Newest.Sequence)
			}
			if view.Step.Sequence > view.Newest.Sequence || view.Step.Record.GetStep() == nil {
				b.Errorf("newest %d, step %d", view.Newest.Sequence, view.Step.Sequence)
			}
		})
	}
	wg.Wait()
	c.whole()
}

func viewNewest(b *bed) {
	c, other := b.chain("r"), b.chain("other")
	check := func(newest, step int, inbox uint64, quiescent bool) {
		b.Helper()
		view, err := b.log.View(b.ctx, c.run, max(c.newest(), inbox))
		b.must(err)
		b.same(view.Newest, c.entries[newest])
		if step >= 0 {
			b.same(view.Step, c.entries[step])
		} else if view.Step.Record != nil {
			b.Fatalf("a step %v", view.Step)
		}
		if view.InboxSequence != inbox {
			b.Fatalf("inbox at %d, want %d", view.InboxSequence, inbox)
		}
		if view.Quiescent() != quiescent {
			b.Fatalf("quiescent is %v", view.Quiescent())
		}
	}
	c.append("repair")
	check(0, 0, 0, false)
	other.grow(3)
	c.append("turn")
	check(1, 1, 0, false)
	c.append("")
	check(2, 1, 0, false)
	c.append(runlog.Park)
	check(3, 3, 0, true)
	item, _, err := b.log.AppendInbox(b.ctx, c.run, &harnessv1.InboxItem{Id: "i"}, 0)
	b.must(err)
	check(3, 3, item, true)
	c.append("repair")
	check(4, 4, item, false)
	c.append("")
	check(5, 4, item, false)
	c.append(runlog.End)
	check(6, 6, item, true)
}

func viewNothing(b *bed) {
	c := b.chain("r")
	_, err := b.log.View(b.ctx, c.run, 0)
	b.wantErr(err, runlog.ErrNotFound)
	b.chain("r2").grow(1) // a run whose name starts identically is another run
	_, err = b.log.View(b.ctx, c.run, 0)
	b.wantErr(err, runlog.ErrNotFound)
	_, _, err = b.log.AppendInbox(b.ctx, c.run, &harnessv1.InboxItem{Id: "i"}, 0)
	b.must(err)
	_, err = b.log.View(b.ctx, c.run, 0)
	b.wantErr(err, runlog.ErrNotFound)
}

// viewCtx checks that a view that waits ends with its context.
func viewCtx(b *bed) {
	c := b.chain("r")
	c.grow(1)
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := b.log.View(ctx, c.run, c.newest()+1_000_000)
		ended <- err
	}()
	cancel()
	b.wantErr(recv(b, ended, "the end of View"), runlog.ErrUnavailable)
}

// viewWaits checks that View waits for a message that is stored a little later.
func newerNothing(b *bed) {
	_, err := b.log.Newer(b.ctx, b.chain("r").run, 0)
	b.wantErr(err, runlog.ErrNotFound)
}

// newerAny checks that any record and any item of the run is newer, and that nothing
// else is.
func newerAny(b *bed) {
	c, other := b.chain("r"), b.chain("other")
	c.append("repair")
	last := c.newest()
	for n, add := range []func() uint64{
		func() uint64 { return c.append("turn").Sequence },
		func() uint64 { return c.append("").Sequence },
		func() uint64 {
			item, _, err := b.log.AppendInbox(b.ctx, c.run, &harnessv1.InboxItem{Id: "i"}, 0)
			b.must(err)
			return item
		},
		func() uint64 { return c.append("repair").Sequence },
		func() uint64 { return c.append(runlog.Park).Sequence },
	} {
		other.grow(2)
		b.send(other.run, message(fmt.Sprint("i", n), ""))
		b.wantNewer(c.run, last, false)
		added := add()
		b.wantNewer(c.run, last, true)
		last = added
	}
	b.wantNewer(c.run, last, false)
}

func (b *bed) wantNewer(run runlog.Run, sequence uint64, want bool) {
	b.Helper()
	got, err := b.log.Newer(b.ctx, run, sequence)
	b.must(err)
	if got != want {
		b.Fatalf("newer than %d: %v", sequence, got)
	}
}

// newerWaits checks that Newer waits until a replica has the message.
