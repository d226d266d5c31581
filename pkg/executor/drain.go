package executor

import (
	"context"
	"errors"
	"time"
)

// DrainFor is a cause with which a worker's context ends: work may continue for the
// duration, whatever Config.Drain is.
type DrainFor time.Duration

// Error returns a text with the duration.
func (d DrainFor) Error() string {
	return "the worker stops; its work may continue for " + time.Duration(d).String()
}

func drainOf(ctx context.Context, drain time.Duration) time.Duration {
	var other DrainFor
	if errors.As(context.Cause(ctx), &other) {
		return time.Duration(other)
	}
	return drain
}

// Draining returns a context that ends drain after ctx, or DrainFor after it if that is the
// cause of its end.
func Draining(ctx context.Context, drain time.Duration) (work context.Context, cancel context.CancelFunc) {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	if drain <= 0 {
		stop := context.AfterFunc(ctx, end)
		return work, func() { stop(); end() }
	}
	timer := make(chan *time.Timer, 1)
	stop := context.AfterFunc(ctx, func() { timer <- time.AfterFunc(drainOf(ctx, drain), end) })
	return work, func() {
		if !stop() {
			(<-timer).Stop()
		}
		end()
	}
}

// stepKey is the key of the runningStep of a context.
type stepKey struct{}

// runningStep is the step that a context belongs to.
type runningStep struct {
	stopping func() bool
	cancel   context.CancelCauseFunc
	task     *Task // nil in tests
}

// PutBack ends the step that ctx belongs to, if its worker takes no more steps and only
// drains: the step is put back, and another worker continues it immediately. It is for what a
// step cannot do any more in this process. It reports whether the step ends.
func PutBack(ctx context.Context) bool {
	step, ok := ctx.Value(stepKey{}).(runningStep)
	if !ok || step.stopping == nil || !step.stopping() {
		return false
	}
	step.cancel(errStopping)
	return true
}
