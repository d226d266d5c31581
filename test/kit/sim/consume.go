package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
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

// Executors returns those that have a consumer, and workflow.Inference.
func (h *handle) Executors(ctx context.Context) ([]string, error) {
	names := append(slices.Clone(h.p.world.cfg.Executors), workflow.Inference)
	slices.Sort(names)
	o := &op{key: key{kind: onExecutors}, do: func(fate) error { return nil }}
	if err := h.p.interact(ctx, o); err != nil {
		return nil, err
	}
	return names, nil
}

// Redeliver fails: the simulated bus keeps what it has acknowledged, so that no step is begun,
// acknowledged and without a successor.
func (h *handle) Redeliver(_ context.Context, run runlog.Run, executor string, from uint64) error {
	return fmt.Errorf("%s: the simulated bus has lost what followed the step at %d to %s", run, from, executor)
}

// Rewind does nothing: the simulated bus loses nothing.
func (h *handle) Rewind(context.Context) error { return nil }

// Expire does nothing: the clock of the simulated bus does not go back.
func (h *handle) Expire(context.Context) error { return nil }

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
