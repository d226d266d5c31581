package runlogtest

import (
	"context"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// jobNotInLog checks that readers, feeds, followers and consumers of records and items
// receive no jobs.
func jobNotInLog(b *bed) {
	c := b.chain("r")
	fed, stop, err := b.feed(c.run)
	b.must(err)
	defer stop()
	steps, _ := b.consume("turn")
	wakes := make(chan runlog.Delivery, 100)
	b.background(func(ctx context.Context) error {
		return b.log.ConsumeWakes(ctx, 4, func(_ context.Context, d runlog.Delivery) { wakes <- d })
	})
	c.append("repair")
	c.create("a")
	c.append("turn")
	item := c.give("i")
	c.create("b")
	newest, err := b.log.Newest(b.ctx, c.run)
	b.must(err)
	view, err := b.log.View(b.ctx, c.run, item)
	b.must(err)
	last, err := b.log.LastInbox(b.ctx, c.run)
	b.must(err)
	if newest != item || last != item || view.InboxSequence != item || view.Newest.Sequence != c.newest() || view.Step.Sequence != c.newest() {
		b.Fatalf("newest %d, last item %d, view %v; want %d and %d", newest, last, view, item, c.newest())
	}
	c.create("c")
	park := c.append(runlog.Park).Sequence
	c.onlyRecords(item)
	c.whole()
	d := recv(b, steps, "the step")
	b.same(d.Entry(), c.entries[1])
	b.must(d.Ack())
	for woken := map[uint64]bool{}; len(woken) < 2; {
		d := recv(b, wakes, "a wake")
		if sequence := d.Entry().Sequence; sequence != item && sequence != park {
			b.Fatalf("sequence %d woke the run", sequence)
		}
		woken[d.Entry().Sequence] = true
		b.must(d.Ack())
	}
	followed, _ := b.runs()
	for _, want := range []uint64{c.first(), park} {
		if s := recv(b, followed, "a step"); s.caughtUp || s.entry.Sequence != want {
			b.Fatalf("followed %v, want the step at %d", s.entry, want)
		}
	}
	if s := recv(b, followed, "the end of what is stored"); !s.caughtUp || len(steps) > 0 {
		b.Fatalf("got %v, and %d steps", s.entry, len(steps))
	}
	for len(fed) > 0 {
		e := <-fed
		b.same(e, c.entries[e.Header.Version-1])
	}
}

// feed sends the records of a feed to a channel.
func (b *bed) feed(run runlog.Run) (<-chan runlog.Entry, func(), error) {
	records := make(chan runlog.Entry, 100)
	stop, err := b.log.Subscribe(b.ctx, run, func(e *runlog.Entry) {
		if e != nil {
			records <- *e
		}
	})
	return records, stop, err
}

// onlyRecords fails unless of the messages of c's run only the records can be read as
// such, and only item as an item.
func (c *chain) onlyRecords(item uint64) {
	c.Helper()
	for sequence := c.first(); sequence <= c.newest(); sequence++ {
		_, err := c.log.Read(c.ctx, c.run, sequence)
		if slices.ContainsFunc(c.entries, func(e runlog.Entry) bool { return e.Sequence == sequence }) {
			c.must(err)
		} else {
			c.wantErr(err, runlog.ErrNotFound)
		}
		if sequence != item {
			_, err := c.log.Inbox(c.ctx, c.run, sequence-1, sequence)
			c.wantErr(err, runlog.ErrNotFound)
		}
	}
}
