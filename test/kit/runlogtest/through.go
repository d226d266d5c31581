package runlogtest

import (
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func (c *chain) give(id string) uint64 {
	c.Helper()
	sequence, _, err := c.log.AppendInbox(c.ctx, c.run, &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}}, 0)
	c.must(err)
	return sequence
}

// eraseThrough checks that an erasure with an old bound touches nothing that was stored
// later: records, items, timers and blobs.
func eraseThrough(b *bed) {
	c := b.chain("r")
	c.grow(3)
	seen := c.give("old")
	ref, err := b.log.PutBlob(b.ctx, c.run, []byte("of the later one"))
	b.must(err)
	c.append("end")
	late := c.give("late")
	b.must(b.log.Erase(b.ctx, c.run, 0, seen))
	v, err := b.log.View(b.ctx, c.run, late)
	b.must(err)
	if v.Newest.Sequence != c.newest() || v.InboxSequence != late {
		b.Fatalf("left are %d and %d, want %d and %d", v.Newest.Sequence, v.InboxSequence, c.newest(), late)
	}
	for _, e := range c.entries[:3] {
		b.until("a record that is gone", func() bool { return !c.readable(e.Sequence) })
	}
	if _, err := b.log.Blob(b.ctx, c.run, ref.GetDigest()); err != nil {
		b.Errorf("its blob: %v", err)
	}
}

// eraseLate checks that blobs and timers of a run that is about to start are not erased
// with the run before.
func eraseLate(b *bed) {
	c := b.chain("r")
	c.append("end")
	b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
	ref, err := b.log.PutBlob(b.ctx, c.run, []byte("of the next one"))
	b.must(err)
	b.must(b.log.SetTimer(b.ctx, c.run, 7, time.Now().Add(time.Hour)))
	b.must(b.log.Erase(b.ctx, c.run, 0, c.newest()))
	if _, err := b.log.Blob(b.ctx, c.run, ref.GetDigest()); err != nil {
		b.Errorf("its blob: %v", err)
	}
}

// newestKnows checks that Newest returns the newest record or item of the run, and
// nothing of other runs.
func newestKnows(b *bed) {
	c, other := b.chain("r"), b.chain("r-2")
	want := func(sequence uint64) {
		b.Helper()
		if got, err := b.log.Newest(b.ctx, c.run); err != nil || got != sequence {
			b.Fatalf("the newest is %d, %v, want %d", got, err, sequence)
		}
	}
	want(0)
	other.grow(2)
	want(0)
	c.grow(2)
	want(c.newest())
	item := c.give("i")
	other.append("end")
	want(item)
	c.append("end")
	want(c.newest())
	b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
	want(0)
}
