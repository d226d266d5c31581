package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func TestFirstDeliveryIsCommittedThenAcknowledged(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	var d *testDelivery
	d = b.deliver(t.Context(), executorFunc{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		if task.Redelivered || len(task.Journal) > 0 || d != nil {
			t.Error("a first delivery looks like a later one")
		}
		return passOn(task), nil
	}}, e, false)
	records := b.tail(e.Header.Version)
	if len(records) != 1 || records[0].GetStep().GetTo() != workflow.StopDecision {
		t.Fatalf("stored %v", records)
	}
	rec := records[0]
	if rec.GetVersion() != 2 || rec.GetPrevSequence() != e.Sequence || rec.GetWriter().GetExecutor() != "turn" ||
		rec.GetWriter().GetInstance() != "mine" || !rec.GetCommitTime().AsTime().Equal(noon) {
		t.Errorf("the record is %v", rec)
	}
	if d.calls() != acked {
		t.Errorf("said %s", d.calls())
	}
}

func TestRedeliveryOfFinishedStepIsDropped(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.journal(claimed(1))
	b.step("stopdecision")
	d := b.deliver(t.Context(), executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
		t.Error("executed again")
		return nil, errors.New("executed again")
	}}, e, true)
	if records := b.tail(3); d.calls() != acked || len(records) > 0 {
		t.Errorf("said %s, stored %v", d.calls(), records)
	}
}

// TestFencedOffOnFirstDelivery checks that a worker that is fenced off neither
// acknowledges nor puts back the step: the run would be lost if the other worker is
// dead. The redelivery reads the journal and continues.
func TestFencedOffOnFirstDelivery(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.journal(claimed(1))
	claim := executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
		if err := task.AppendJournal(ctx, claimed(uint32(len(task.Journal)+1)), nil, nil); err != nil {
			return nil, fmt.Errorf("claim: %w", err)
		}
		return passOn(task), nil
	}}
	for name, x := range map[string]Executor{"one that claims": claim, "one that only commits": executorFunc{"turn", passesOn}} {
		d := b.deliver(t.Context(), x, e, false)
		if records := b.tail(2); d.calls() != silent || len(records) > 0 {
			t.Fatalf("%s said %s and stored %v", name, d.calls(), records)
		}
	}
	d := b.deliver(t.Context(), claim, e, true)
	records := b.tail(2)
	if d.calls() != acked || len(records) != 2 || records[0].GetJournal().GetTurnStarted().GetAttempt() != 2 || records[1].GetStep() == nil {
		t.Errorf("said %s and stored %v", d.calls(), records)
	}
}

// TestCopyOfStepInWorkIsIgnored checks that a redelivery that arrives while the
// original is in work in the same process does not claim the step.
func TestCopyOfStepInWorkIsIgnored(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	began, finish := make(chan struct{}), make(chan struct{})
	var times atomic.Int32
	l := loopOf(Config{Log: b.log}, executorFunc{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		times.Add(1)
		close(began)
		<-finish
		return passOn(task), nil
	}})
	original, again := &testDelivery{entry: e}, &testDelivery{entry: e, again: true}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.handle(t.Context(), original.received())
	}()
	<-began
	l.handle(t.Context(), again.received())
	close(finish)
	<-ended
	if again.calls() != silent || original.calls() != acked || times.Load() != 1 {
		t.Errorf("the copy said %s, the original %s, after %d executions", again.calls(), original.calls(), times.Load())
	}
}

// TestFailuresAreRecordedThenPoison covers errors and panics.
func TestFailuresAreRecordedThenPoison(t *testing.T) {
	for name, f := range map[string]func() error{
		"error":     func() error { return errors.New("cannot") },
		"panic":     func() error { panic("cannot") },
		"nil panic": func() error { var p *int; *p = 1; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			e := b.step("compaction")
			x := executorFunc{"compaction", func(context.Context, *Task) (*harnessv1.Outcome, error) { return nil, f() }}
			for n, verdict := range []string{"[nak 200ms]", "[nak 400ms]", "[nak 800ms]", "[nak 1.6s]", acked} {
				d := b.deliver(t.Context(), x, e, n > 0)
				if d.calls() != verdict {
					t.Errorf("failure %d: said %s, want %s", n+1, d.calls(), verdict)
				}
			}
			records := b.tail(1)
			if len(records) != MaxFailures+1 {
				t.Fatalf("stored %d records", len(records))
			}
			for n, rec := range records[:MaxFailures] {
				failed := rec.GetJournal().GetExecutorFailed()
				if failed.GetCount() != uint32(n+1) || failed.GetExecutor() != "compaction" || failed.GetError() == "" {
					t.Errorf("failure %d: %v", n+1, failed)
				}
				if event := rec.GetEvents()[0].GetExecutorError(); event.GetCount() != failed.GetCount() {
					t.Errorf("failure %d: %v", n+1, event)
				}
			}
			step := records[MaxFailures].GetStep()
			if step.GetTo() != workflow.StopDecision || step.GetTurnComplete().GetError().GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON {
				t.Errorf("the end is %v", step)
			}
		})
	}
}

// TestTemporaryErrorsDoNotCount checks that temporary errors do not count against the
// run.
func TestTemporaryErrorsDoNotCount(t *testing.T) {
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"the log cannot be reached", context.Background(), fmt.Errorf("read: %w", runlog.ErrUnavailable), "[nak 1s]"},
		{"the tool host cannot be reached", context.Background(), Retry("tool host", errors.New("away")), "[nak 1s]"},
		{"fenced off", context.Background(), fmt.Errorf("note: %w", runlog.ErrFenced), silent},
		{"stopping", stopped, context.Canceled, "[nak 0s]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			e := b.step("turn")
			d := b.deliver(c.ctx, executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) { return nil, c.err }}, e, false)
			if records := b.tail(1); d.calls() != c.want || len(records) > 0 {
				t.Errorf("said %s, want %s; stored %v", d.calls(), c.want, records)
			}
		})
	}
}

// TestStoppedWorkerCommitsFinishedWork checks that a stopped worker does not discard
// finished work.
func TestStoppedWorkerCommitsFinishedWork(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	ctx, stop := context.WithCancel(t.Context())
	d := b.deliver(ctx, executorFunc{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		stop()
		return passOn(task), nil
	}}, e, false)
	if records := b.tail(1); d.calls() != acked || len(records) != 1 {
		t.Errorf("said %s, stored %v", d.calls(), records)
	}
}

// TestNewerSchemaIsLeftToNewerWorker checks that a step or journal of a newer schema
// does not fail the run during a rolling upgrade.
func TestNewerSchemaIsLeftToNewerWorker(t *testing.T) {
	never := executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
		panic("executed")
	}}
	t.Run("step", func(t *testing.T) {
		b := newBed(t)
		b.put(&harnessv1.Record{Schema: runlog.Schema + 1, Body: &harnessv1.Record_Step{Step: stepTo("turn")}})
		view, err := b.log.View(t.Context(), b.run, b.newest.Sequence)
		if err != nil || !errors.Is(view.Newest.Err, runlog.ErrSchemaTooNew) {
			t.Fatal(view.Newest, err)
		}
		for _, again := range []bool{false, true} {
			if d := b.deliver(t.Context(), never, view.Newest, again); d.calls() != "[nak 30s]" {
				t.Errorf("said %s", d.calls())
			}
		}
		if records := b.tail(1); len(records) > 0 {
			t.Errorf("stored %v", records)
		}
	})
	t.Run("journal", func(t *testing.T) {
		b := newBed(t)
		e := b.step("turn")
		b.put(&harnessv1.Record{Schema: runlog.Schema + 1, Body: &harnessv1.Record_Journal{Journal: claimed(1)}})
		if d := b.deliver(t.Context(), never, e, true); d.calls() != "[nak 1s]" {
			t.Errorf("said %s", d.calls())
		}
		if records := b.tail(2); len(records) > 0 {
			t.Errorf("stored %v", records)
		}
	})
}

// TestBrokenRecordFailsTheRun checks that a broken record fails the run from its newest
// readable state.
func TestBrokenRecordFailsTheRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(b *bed) runlog.Entry // returns the entry to deliver
		turns  uint32
	}{
		{"step", func(b *bed) runlog.Entry {
			b.step("repair")
			return b.broken(runlog.StepSubject(0, b.run, "turn"))
		}, 3},
		{"first step of all", func(b *bed) runlog.Entry {
			return b.broken(runlog.StepSubject(0, b.run, "turn"))
		}, 0},
		{"newest of the journal", func(b *bed) runlog.Entry {
			e := b.step("turn")
			b.journal(claimed(1))
			b.broken(runlog.JournalSubject(0, b.run))
			return e
		}, 3},
		{"middle of the journal", func(b *bed) runlog.Entry {
			e := b.step("turn")
			b.broken(runlog.JournalSubject(0, b.run))
			b.journal(claimed(2))
			return e
		}, 3},
		{"step with a journal behind it", func(b *bed) runlog.Entry {
			b.step("repair")
			e := b.broken(runlog.StepSubject(0, b.run, "turn"))
			b.journal(claimed(1))
			return e
		}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			e := c.before(b)
			at := b.newest.Header.Version
			d := b.deliver(t.Context(), executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) { panic("executed") }}, e, true)
			records := b.tail(at)
			if d.calls() != acked || len(records) != 1 {
				t.Fatalf("said %s, stored %v", d.calls(), records)
			}
			step := records[0].GetStep()
			failed := step.GetTurnComplete().GetError()
			if step.GetTo() != workflow.StopDecision || failed.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON ||
				!strings.Contains(failed.GetMessage(), "cannot be decoded") {
				t.Errorf("the end is %v", step)
			}
			if s := step.GetSnapshot(); s.GetTurnCount() != c.turns || s.GetPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
				t.Errorf("the snapshot is %v", s)
			}
		})
	}
}

// TestIllegalTransition checks that an illegal transition fails the run immediately.
func TestIllegalTransition(t *testing.T) {
	for name, f := range map[string]func(context.Context, *Task) (*harnessv1.Outcome, error){
		"a phase that the table does not lead to": func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
			o := passOn(task)
			o.Step.Snapshot.Phase = harnessv1.Phase_PHASE_DONE
			return o, nil
		},
		"a change that the table does not have": func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
			o := passOn(task)
			o.Step.PhaseChanges[0].Input = harnessv1.PhaseInput_PHASE_INPUT_COMPLETE
			return o, nil
		},
		"a decision that would make one": func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
			s := task.Snapshot()
			return nil, fmt.Errorf("decide: %w", runstate.ChangePhase(&harnessv1.Step{}, s, harnessv1.PhaseInput_PHASE_INPUT_REOPEN))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			e := b.step("turn")
			d := b.deliver(t.Context(), executorFunc{"turn", f}, e, false)
			records := b.tail(1)
			if d.calls() != acked || len(records) != 1 ||
				records[0].GetStep().GetTurnComplete().GetError().GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_ILLEGAL_TRANSITION {
				t.Errorf("said %s, stored %v", d.calls(), records)
			}
		})
	}
}

// TestSnapshotTooLarge checks that a run fails above 64 KiB, and that no bound prevents
// it from failing.
func TestSnapshotTooLarge(t *testing.T) {
	grow := func(s *harnessv1.Snapshot, bytes int) {
		for bytes > 0 {
			bytes -= 1002
			s.GrantedTools = append(s.GrantedTools, strings.Repeat("g", 999))
		}
	}
	growing := func(bytes int) executorFunc {
		return executorFunc{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
			o := passOn(task)
			grow(o.GetStep().GetSnapshot(), bytes)
			return o, nil
		}}
	}
	t.Run("within", func(t *testing.T) {
		b := newBed(t)
		b.deliver(t.Context(), growing(60<<10), b.step("turn"), false)
		if records := b.tail(1); records[0].GetStep().GetTurnComplete().GetError() != nil {
			t.Errorf("stored %v", records)
		}
	})
	t.Run("over", func(t *testing.T) {
		b := newBed(t)
		d := b.deliver(t.Context(), growing(65<<10), b.step("turn"), false)
		records := b.tail(1)
		if d.calls() != acked || records[0].GetStep().GetTurnComplete().GetError().GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_SNAPSHOT_TOO_LARGE {
			t.Errorf("said %s, stored %v", d.calls(), records)
		}
	})
	t.Run("a run at the bound can still fail", func(t *testing.T) {
		b := newBed(t)
		step := stepTo(workflow.StopDecision)
		grow(step.GetSnapshot(), 66<<10)
		e := b.put(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}})
		d := b.deliver(t.Context(), executorFunc{workflow.StopDecision, func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
			s := task.Snapshot()
			return &harnessv1.Outcome{Step: &harnessv1.Step{To: "repair", Snapshot: s, Message: &harnessv1.Step_RepairTrigger{}}}, nil
		}}, e, false)
		records := b.tail(1)
		if d.calls() != acked || records[0].GetStep().GetTo() != runlog.End || records[0].GetStep().GetResult().GetReason().GetKind() != "snapshot_too_large" {
			t.Errorf("said %s, stored %v", d.calls(), records)
		}
	})
}

// TestIncompleteOutcomesAreErrors checks that an outcome without addressee, snapshot or
// message is an error of the executor.
func TestIncompleteOutcomesAreErrors(t *testing.T) {
	for name, o := range map[string]*harnessv1.Outcome{
		"none":         nil,
		"no step":      {},
		"no addressee": {Step: &harnessv1.Step{Snapshot: &harnessv1.Snapshot{}, Message: &harnessv1.Step_Parked{}}},
		"no snapshot":  {Step: &harnessv1.Step{To: "repair", Message: &harnessv1.Step_Parked{}}},
		"no message":   {Step: &harnessv1.Step{To: "repair", Snapshot: &harnessv1.Snapshot{}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			d := b.deliver(t.Context(), executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) { return o, nil }}, b.step("turn"), false)
			if records := b.tail(1); d.calls() != "[nak 200ms]" || records[0].GetJournal().GetExecutorFailed().GetCount() != 1 {
				t.Errorf("said %s, stored %v", d.calls(), records)
			}
		})
	}
}

// reusedLog reads the newest record wherever an older one is requested, as a cache does that
// is older than a loss of the bus.
type reusedLog struct {
	runlog.Log
	newest runlog.Entry
}

func (l reusedLog) Read(context.Context, runlog.Run, uint64) (runlog.Entry, error) {
	return l.newest, nil
}

// TestJournalThatDoesNotFollow: the step comes again, and only if the same is found in later
// deliveries its run fails.
func TestJournalThatDoesNotFollow(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.journal(claimed(1))
	b.journal(claimed(2))
	l := loopOf(Config{Log: reusedLog{b.log, b.newest}}, executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
		t.Error("the step was executed")
		return nil, errors.New("executed")
	}})
	for n := uint64(2); n <= lostDeliveries; n++ {
		if d := b.takeIn(t.Context(), l, e, n); d.calls() != silent {
			t.Errorf("delivery %d: said %s", n, d.calls())
		}
	}
	d := b.takeIn(t.Context(), l, e, lostDeliveries+1)
	if failed := b.tail(3)[0].GetStep().GetTurnComplete().GetError(); d.calls() != acked || failed.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON {
		t.Errorf("said %s, stored %v", d.calls(), failed)
	}
}
