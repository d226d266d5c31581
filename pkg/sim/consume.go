package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Consume delivers steps.
func (h *handle) Consume(ctx context.Context, executor string, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return h.p.consume(ctx, executor, concurrency, func(ctx context.Context, d *delivery) { handle(ctx, d) })
}

// ConsumeWakes delivers what can wake a run.
func (h *handle) ConsumeWakes(ctx context.Context, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return h.p.consume(ctx, wakes, concurrency, func(ctx context.Context, d *delivery) { handle(ctx, d) })
}

// SetTimer sets a timer.
func (h *handle) SetTimer(ctx context.Context, run runlog.Run, parkVersion uint64, at time.Time) error {
	w := h.p.world
	o := &op{key: key{kind: onTimer, run: run.ID, a: parkVersion}, write: true}
	o.do = func(fate) error {
		w.setTimer(run, parkVersion, at)
		return nil
	}
	return h.p.interact(ctx, o)
}

// ConsumeTimers delivers timers until they are handled.
func (h *handle) ConsumeTimers(ctx context.Context, handle func(context.Context, runlog.Run, uint64) error) error {
	return h.p.consume(ctx, timersName, 8, func(ctx context.Context, d *delivery) {
		if err := handle(ctx, d.h.timer.run, d.h.timer.version); err != nil {
			_ = d.Nak(time.Second)
			return
		}
		_ = d.Ack()
	})
}

// AckWait returns the time after which a delivery is repeated.
func (h *handle) AckWait() time.Duration { return h.p.world.ackWait }

// Executors returns those that have a consumer.
func (h *handle) Executors(ctx context.Context) ([]string, error) {
	names := slices.Sorted(slices.Values(h.p.world.cfg.Executors))
	o := &op{key: key{kind: onExecutors}, do: func(fate) error { return nil }}
	if err := h.p.interact(ctx, o); err != nil {
		return nil, err
	}
	return names, nil
}

// AckFloor returns the ack floor of a consumer.
func (h *handle) AckFloor(ctx context.Context, run runlog.Run, executor string) (sequence uint64, err error) {
	c := h.p.world.consumer(executor)
	if c == nil {
		return 0, fmt.Errorf("executor %s: %w", executor, runlog.ErrNotFound)
	}
	o := &op{key: key{kind: onFloor, run: run.ID, text: executor}}
	o.do = func(fate) error {
		sequence = c.ackFloor()
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil {
		return 0, err
	}
	return sequence, nil
}

// Erase deletes what is stored of a run, a few messages at a time: timers first,
// including those that fired, then blobs, inbox items and records. Deleted messages are
// not delivered again.
func (h *handle) Erase(ctx context.Context, run runlog.Run, keep, through uint64) error {
	if !run.Valid() {
		return fmt.Errorf("erase: run %q has an invalid name", run)
	}
	w := h.p.world
	for part := uint64(0); ; part++ {
		left := 0
		o := &op{key: key{kind: onErase, run: run.ID, a: keep, b: part}, write: true}
		o.do = func(fate) error {
			newest := w.store.newest(run)
			if newest == 0 {
				return nil
			}
			if part == 0 && newest <= through {
				w.eraseTimers(run)
			} else if part > 0 {
				w.store.erase(run, keep, through, eraseBatch)
			}
			left = w.store.left(run, keep, through)
			return nil
		}
		if err := h.p.interact(ctx, o); err != nil {
			return err
		}
		if left <= 0 && part > 0 {
			return nil
		}
	}
}

// eraseBatch is how many messages are deleted in one interaction.
const eraseBatch = 8
