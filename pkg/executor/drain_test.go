package executor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDrainForReplacesTheDrain(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  time.Duration
	}{{nil, time.Second}, {DrainFor(time.Minute), time.Minute}, {DrainFor(0), 0}, {errors.New("other"), time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			work, cancel := Draining(ctx, time.Second)
			defer cancel()
			began := time.Now()
			stop(c.cause)
			<-work.Done()
			if took := time.Since(began); took != c.want {
				t.Errorf("%v: work ended after %v, want %v", c.cause, took, c.want)
			}
		})
	}
}

func TestPutBackEndsAStepOfAStoppingWorker(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	leaves := false
	step := context.WithValue(ctx, stepKey{}, runningStep{stopping: func() bool { return leaves }, cancel: cancel})
	if PutBack(t.Context()) || PutBack(step) || ctx.Err() != nil {
		t.Error("a step of a worker that continues was ended")
	}
	leaves = true
	if !PutBack(step) || verdictOf(context.Cause(ctx), false) != stopping {
		t.Errorf("a step of a stopping worker: %v", context.Cause(ctx))
	}
}
