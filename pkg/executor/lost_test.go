package executor

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestOwnsAfterLoss checks that a task owns its step only while its newest record is
// stored: a bus that has lost it uses its sequence again.
func TestOwnsAfterLoss(t *testing.T) {
	t.Parallel()
	entry := func(sequence, nonce uint64) runlog.Entry {
		return runlog.Entry{Sequence: sequence, Record: &harnessv1.Record{Writer: &harnessv1.Writer{Instance: "w", Nonce: nonce}}}
	}
	for name, c := range map[string]struct {
		newest    runlog.Entry
		appending uint64 // nonce of the record that is being appended
		owns      bool
	}{
		"own record":               {newest: entry(9, 1), owns: true},
		"record that is appended":  {newest: entry(10, 2), appending: 2, owns: true},
		"record of another worker": {newest: entry(10, 3), appending: 2},
		"own sequence, other":      {newest: entry(9, 3)},
		"shorter log":              {newest: entry(8, 3)},
	} {
		task := &Task{tail: entry(9, 1)}
		if c.appending != 0 {
			task.writer = &harnessv1.Writer{Instance: "w", Nonce: c.appending}
		}
		if got := task.owns(runlog.View{Newest: c.newest}); got != c.owns {
			t.Errorf("%s: owns is %v", name, got)
		}
	}
}

// forgetfulLog is a log whose bus has lost the newest records once lost is set.
type forgetfulLog struct {
	Log
	lost atomic.Bool
}

func (l *forgetfulLog) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	if l.lost.Load() {
		return runlog.View{}, runlog.ErrLost
	}
	return l.Log.View(ctx, run, contains)
}

// TestLossEndsWork checks that work on a step that the bus has lost ends with that cause,
// and that its delivery is left alone.
func TestLossEndsWork(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	log := &forgetfulLog{Log: b.log}
	d := &testDelivery{entry: e}
	newLoop(Config{Log: log}.withDefaults(), executorFunc{"turn", func(ctx context.Context, _ *Task) (*harnessv1.Outcome, error) {
		log.lost.Store(true)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), runlog.ErrLost) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		return nil, ctx.Err()
	}}).handle(t.Context(), d.received())
	if d.calls() != silent {
		t.Errorf("said %s", d.calls())
	}
	d = &testDelivery{entry: e, again: true}
	newLoop(Config{Log: log}.withDefaults(), executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
		t.Error("executed")
		return nil, errors.New("lost")
	}}).handle(t.Context(), d.received())
	if d.calls() != silent {
		t.Errorf("said %s about a lost step", d.calls())
	}
}
