package sim

import (
	"context"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// enter takes a slot of the listener, of those that are counted in used.
func (d *delivery) enter(used *int) {
	w := d.l.p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	*used++
	d.leave = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		*used--
		d.leave = func() {}
	}
}

// Wait calls wait without a slot of the listener. Of the deliveries that have waited,
// the scheduler draws the one that continues.
func (d *delivery) Wait(ctx context.Context, wait func()) error {
	l, w := d.l, d.l.p.world
	d.leave()
	w.mu.Lock()
	w.signal() // another message can be delivered
	w.mu.Unlock()
	wait()
	o := &op{
		key:      key{kind: onResume, run: d.entry.Run.ID, text: l.consumer.name, a: d.h.sequence, b: uint64(d.count)},
		deadline: time.Now().Add(24 * time.Hour),
		ready:    func() bool { return l.resumed < runlog.Resumed(l.room) },
		do: func(fate) error {
			d.enter(&l.resumed)
			return nil
		},
	}
	err := l.p.interact(ctx, o)
	if ctx.Err() != nil {
		d.leave()
		return context.Cause(ctx)
	}
	return err
}
