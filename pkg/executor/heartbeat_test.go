package executor

import (
	"context"
	"errors"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestLostStepIsCancelled checks that the heartbeat cancels the work once a record of
// another instance follows the step, and that the loop then does nothing with the
// delivery.
func TestLostStepIsCancelled(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	d := b.deliver(t.Context(), executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
		if err := task.AppendJournal(ctx, claimed(1), nil, nil); err != nil {
			return nil, err
		}
		b.newest = task.Tail()
		b.journal(claimed(2))
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), errLost) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		if err := task.AppendJournal(context.WithoutCancel(ctx), claimed(3), nil, nil); !errors.Is(err, runlog.ErrFenced) {
			t.Errorf("a worker that lost the step could write: %v", err)
		}
		return nil, ctx.Err()
	}}, e, false)
	if records := b.tail(3); d.calls() != silent || len(records) > 0 {
		t.Errorf("said %s, stored %v", d.calls(), records)
	}
}

// TestLostWorkIsNotCommitted checks that the fence stops an executor that ignores its
// context.
func TestLostWorkIsNotCommitted(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	d := b.deliver(t.Context(), executorFunc{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		b.journal(claimed(1))
		return passOn(task), nil
	}}, e, false)
	if records := b.tail(2); d.calls() != silent || len(records) > 0 {
		t.Errorf("said %s, stored %v", d.calls(), records)
	}
}

// TestHeartbeatPostponesRedelivery checks that heartbeats postpone the redelivery while
// the task owns the step, and that the executor gets their views.
func TestHeartbeatPostponesRedelivery(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	d := &testDelivery{entry: e, beats: make(chan struct{}, 1)}
	l := loopOf(Config{Log: b.log}, executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
		seen := make(chan runlog.View, 1)
		task.OnHeartbeat(func(_ context.Context, view runlog.View) {
			select {
			case seen <- view:
			default:
			}
		})
		sequence, _, err := b.writer.AppendInbox(ctx, b.run, &harnessv1.InboxItem{Id: "i"}, 0)
		if err != nil {
			return nil, err
		}
		if view := <-seen; view.Newest.Sequence != e.Sequence || view.InboxSequence != sequence {
			t.Errorf("the heartbeat saw %v", view)
		}
		<-d.beats
		return passOn(task), nil
	}})
	l.handle(t.Context(), d.received())
	if d.calls() != acked {
		t.Errorf("said %s", d.calls())
	}
}

// TestRunRedelivers uses a real consumer. It checks that a step whose worker does
// nothing is delivered again after AckWait, with its journal, until a newer Step is
// stored.
func TestRunRedelivers(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.journal(claimed(1)) // of a worker that died
	ctx, stop := context.WithCancel(t.Context())
	executed := make(chan int, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{Log: b.log, Instance: "mine"}, executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
			executed <- len(task.Journal)
			if err := task.AppendJournal(ctx, claimed(2), nil, nil); err != nil {
				return nil, err
			}
			return passOn(task), nil
		}})
	}()
	done := errors.New("done")
	err := runlog.Watcher{Handle: func(e runlog.Entry) error {
		if e.Record.GetStep().GetTo() == "stopdecision" {
			return done
		}
		return nil
	}}.Watch(t.Context(), b.writer, b.run)
	if !errors.Is(err, done) {
		t.Fatal(err)
	}
	for n, want := range []int{0, 1} {
		if got := <-executed; got != want {
			t.Errorf("delivery %d came with %d records of the journal, want %d", n+1, got, want)
		}
	}
	consumer, err := b.raw.Consumer(t.Context(), "RUNS_0", "exec-turn")
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := consumer.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.NumAckPending == 0 && info.AckFloor.Stream >= e.Sequence {
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if len(executed) > 0 {
		t.Error("executed again")
	}
}

func TestRunWithoutConsumer(t *testing.T) {
	b := newBed(t)
	if err := Run(t.Context(), Config{Log: b.log}, executorFunc{name: "nobody"}); err == nil {
		t.Error("an executor without a consumer runs")
	}
}
