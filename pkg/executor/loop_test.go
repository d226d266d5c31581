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
	var d *delivered
	d = b.deliver(t.Context(), does{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
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
	if d.verdict() != acked {
		t.Errorf("said %s", d.verdict())
	}
}

func TestRedeliveryOfWhatIsDoneIsDropped(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.journal(claimed(1))
	b.step("stopdecision")
	d := b.deliver(t.Context(), does{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
		t.Error("executed again")
		return nil, errors.New("executed again")
	}}, e, true)
	if records := b.tail(3); d.verdict() != acked || len(records) > 0 {
		t.Errorf("said %s, stored %v", d.verdict(), records)
	}
}

// TestFirstDeliveryThatFindsAnotherWorkerIsSilent: the fence says that the step
// is someone else's; an acknowledgement would lose the run if that one is dead.
// The redelivery reads what was done and goes on from there.
func TestFirstDeliveryThatFindsAnotherWorkerIsSilent(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.journal(claimed(1))
	claim := does{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
		if err := task.Note(ctx, claimed(uint32(len(task.Journal)+1)), nil, nil); err != nil { //nolint:gosec // small
			return nil, fmt.Errorf("claim: %w", err)
		}
		return passOn(task), nil
	}}
	for name, x := range map[string]Executor{"one that claims": claim, "one that only commits": does{"turn", handsOn}} {
		d := b.deliver(t.Context(), x, e, false)
		if records := b.tail(2); d.verdict() != silent || len(records) > 0 {
			t.Fatalf("%s said %s and stored %v", name, d.verdict(), records)
		}
	}
	d := b.deliver(t.Context(), claim, e, true)
	records := b.tail(2)
	if d.verdict() != acked || len(records) != 2 || records[0].GetJournal().GetTurnStarted().GetAttempt() != 2 || records[1].GetStep() == nil {
		t.Errorf("said %s and stored %v", d.verdict(), records)
	}
}

// TestACopyOfAStepInWorkIsLeftAlone: a redelivery that waited while the
// original was begun in the same process must not rob it.
func TestACopyOfAStepInWorkIsLeftAlone(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	began, finish := make(chan struct{}), make(chan struct{})
	var times atomic.Int32
	l := &loop{cfg: Config{Log: b.log, Instance: "mine"}.withDefaults(), x: does{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		times.Add(1)
		close(began)
		<-finish
		return passOn(task), nil
	}}}
	l.logger = l.cfg.Logger
	original, again := &delivered{entry: e}, &delivered{entry: e, again: true}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.handle(t.Context(), original)
	}()
	<-began
	l.handle(t.Context(), again)
	close(finish)
	<-ended
	if again.verdict() != silent || original.verdict() != acked || times.Load() != 1 {
		t.Errorf("the copy said %s, the original %s, after %d executions", again.verdict(), original.verdict(), times.Load())
	}
}

// TestFailuresAreRecordsAndThenPoison: errors and panics alike.
func TestFailuresAreRecordsAndThenPoison(t *testing.T) {
	for name, f := range map[string]func() error{
		"error":     func() error { return errors.New("cannot") },
		"panic":     func() error { panic("cannot") },
		"nil panic": func() error { var p *int; *p = 1; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			e := b.step("compaction")
			x := does{"compaction", func(context.Context, *Task) (*harnessv1.Outcome, error) { return nil, f() }}
			for n, verdict := range []string{"[nak 200ms]", "[nak 400ms]", "[nak 800ms]", "[nak 1.6s]", acked} {
				d := b.deliver(t.Context(), x, e, n > 0)
				if d.verdict() != verdict {
					t.Errorf("failure %d: said %s, want %s", n+1, d.verdict(), verdict)
				}
			}
			records := b.tail(1)
			if len(records) != MaxFailures+1 {
				t.Fatalf("stored %d records", len(records))
			}
			for n, rec := range records[:MaxFailures] {
				failed := rec.GetJournal().GetExecutorFailed()
				if failed.GetCount() != uint32(n+1) || failed.GetExecutor() != "compaction" || failed.GetError() == "" { //nolint:gosec // small
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

// TestPassingTroubleIsNoFailure: nothing is counted against the run.
func TestPassingTroubleIsNoFailure(t *testing.T) {
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
			d := b.deliver(c.ctx, does{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) { return nil, c.err }}, e, false)
			if records := b.tail(1); d.verdict() != c.want || len(records) > 0 {
				t.Errorf("said %s, want %s; stored %v", d.verdict(), c.want, records)
			}
		})
	}
}

// TestStoppedWorkerCommitsWhatIsDone: the work is not thrown away.
func TestStoppedWorkerCommitsWhatIsDone(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	ctx, stop := context.WithCancel(t.Context())
	d := b.deliver(ctx, does{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		stop()
		return passOn(task), nil
	}}, e, false)
	if records := b.tail(1); d.verdict() != acked || len(records) != 1 {
		t.Errorf("said %s, stored %v", d.verdict(), records)
	}
}

// TestNewerSchemaIsLeft: a rolling upgrade must not fail runs, whether it is the
// step or the journal behind it that this worker cannot read yet.
func TestNewerSchemaIsLeft(t *testing.T) {
	never := does{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
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
			if d := b.deliver(t.Context(), never, view.Newest, again); d.verdict() != "[nak 30s]" {
				t.Errorf("said %s", d.verdict())
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
		if d := b.deliver(t.Context(), never, e, true); d.verdict() != "[nak 1s]" {
			t.Errorf("said %s", d.verdict())
		}
		if records := b.tail(2); len(records) > 0 {
			t.Errorf("stored %v", records)
		}
	})
}

// TestBrokenRecordFailsTheRun: visibly, on the newest state that can be read.
func TestBrokenRecordFailsTheRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(b *bed) runlog.Entry // returns what is delivered
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
			d := b.deliver(t.Context(), does{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) { panic("executed") }}, e, true)
			records := b.tail(at)
			if d.verdict() != acked || len(records) != 1 {
				t.Fatalf("said %s, stored %v", d.verdict(), records)
			}
			step := records[0].GetStep()
			failed := step.GetTurnComplete().GetError()
			if step.GetTo() != workflow.StopDecision || failed.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON ||
				!strings.Contains(failed.GetMessage(), "cannot be decoded") {
				t.Errorf("the end is %v", step)
			}
			if s := step.GetSnapshot(); s.GetTurnCount() != c.turns || s.GetPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
				t.Errorf("it stands on %v", s)
			}
		})
	}
}

// TestIllegalTransition: refused and FAILED at once; trying again mends nothing.
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
			d := b.deliver(t.Context(), does{"turn", f}, e, false)
			records := b.tail(1)
			if d.verdict() != acked || len(records) != 1 ||
				records[0].GetStep().GetTurnComplete().GetError().GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_ILLEGAL_TRANSITION {
				t.Errorf("said %s, stored %v", d.verdict(), records)
			}
		})
	}
}

// TestSnapshotTooLarge: over 64 KiB the run fails; and no bound keeps it from failing.
func TestSnapshotTooLarge(t *testing.T) {
	grow := func(s *harnessv1.Snapshot, bytes int) {
		for bytes > 0 {
			bytes -= 1002
			s.GrantedTools = append(s.GrantedTools, strings.Repeat("g", 999))
		}
	}
	growing := func(bytes int) does {
		return does{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
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
		if d.verdict() != acked || records[0].GetStep().GetTurnComplete().GetError().GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_SNAPSHOT_TOO_LARGE {
			t.Errorf("said %s, stored %v", d.verdict(), records)
		}
	})
	t.Run("a run at the bound can still fail", func(t *testing.T) {
		b := newBed(t)
		step := stepTo(workflow.StopDecision)
		grow(step.GetSnapshot(), 66<<10)
		e := b.put(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}})
		d := b.deliver(t.Context(), does{workflow.StopDecision, func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
			s := task.Snapshot()
			return &harnessv1.Outcome{Step: &harnessv1.Step{To: "repair", Snapshot: s, Message: &harnessv1.Step_RepairTrigger{}}}, nil
		}}, e, false)
		records := b.tail(1)
		if d.verdict() != acked || records[0].GetStep().GetTo() != runlog.End || records[0].GetStep().GetResult().GetReason().GetKind() != "snapshot_too_large" {
			t.Errorf("said %s, stored %v", d.verdict(), records)
		}
	})
}

// TestMeaninglessOutcomesAreErrors of the executor.
func TestMeaninglessOutcomesAreErrors(t *testing.T) {
	for name, o := range map[string]*harnessv1.Outcome{
		"none":         nil,
		"no step":      {},
		"no addressee": {Step: &harnessv1.Step{Snapshot: &harnessv1.Snapshot{}, Message: &harnessv1.Step_Parked{}}},
		"no snapshot":  {Step: &harnessv1.Step{To: "repair", Message: &harnessv1.Step_Parked{}}},
		"no message":   {Step: &harnessv1.Step{To: "repair", Snapshot: &harnessv1.Snapshot{}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			d := b.deliver(t.Context(), does{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) { return o, nil }}, b.step("turn"), false)
			if records := b.tail(1); d.verdict() != "[nak 200ms]" || records[0].GetJournal().GetExecutorFailed().GetCount() != 1 {
				t.Errorf("said %s, stored %v", d.verdict(), records)
			}
		})
	}
}
