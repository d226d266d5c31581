package executor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// needsTwo is a decision that needs two observations, one after the other.
func needsTwo(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	needs := func(key string) *harnessv1.StepOutput {
		return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: []string{key}}}}
	}
	switch len(in.GetObserved()) {
	case 0:
		return needs("first"), nil
	case 1:
		return needs("second"), nil
	}
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{
		Step: &harnessv1.Step{Observed: in.GetObserved()},
	}}}, nil
}

// TestPureObservesOnce checks that each key is fetched once, in order, and that the
// observations reach the outcome.
func TestPureObservesOnce(t *testing.T) {
	var asked []string
	p := &Pure{ExecutorName: "pure", Decide: needsTwo, Observe: func(_ context.Context, _ *Task, key string) (*harnessv1.Observation, error) {
		asked = append(asked, key)
		return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Tokens{Tokens: uint32(len(asked))}}, nil
	}}
	in := &harnessv1.StepInput{Namespace: "n", RunId: "r", Step: &harnessv1.Step{}}
	before := proto.CloneOf(in)
	outcome, err := p.Execute(t.Context(), looseTask(in))
	if err != nil || !slices.Equal(asked, []string{"first", "second"}) {
		t.Fatalf("asked %v: %v", asked, err)
	}
	observed := outcome.GetStep().GetObserved()
	if len(observed) != 2 || observed[0].GetTokens() != 1 || observed[1].GetTokens() != 2 {
		t.Errorf("recorded %v", observed)
	}
	if !proto.Equal(in, before) {
		t.Error("the input was changed")
	}
	if p.Name() != "pure" {
		t.Errorf("called %q", p.Name())
	}
}

func TestPureFails(t *testing.T) {
	boom := errors.New("boom")
	observed := 0
	observe := func(_ context.Context, _ *Task, key string) (*harnessv1.Observation, error) {
		observed++
		return &harnessv1.Observation{Key: key}, nil
	}
	for name, p := range map[string]*Pure{
		"the decision fails":    {Decide: func(*harnessv1.StepInput) (*harnessv1.StepOutput, error) { return nil, boom }},
		"nothing to look with":  {Decide: needsTwo},
		"the observation fails": {Decide: needsTwo, Observe: func(context.Context, *Task, string) (*harnessv1.Observation, error) { return nil, boom }},
		"it needsTwo for ever": {Observe: observe, Decide: func(*harnessv1.StepInput) (*harnessv1.StepOutput, error) {
			return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: []string{"more"}}}}, nil
		}},
		"it says nothing": {Decide: func(*harnessv1.StepInput) (*harnessv1.StepOutput, error) { return &harnessv1.StepOutput{}, nil }},
	} {
		if _, err := p.Execute(t.Context(), looseTask(&harnessv1.StepInput{})); err == nil {
			t.Errorf("%s, and there is an outcome", name)
		}
	}
	if observed != maxRounds {
		t.Errorf("asked %d times", observed)
	}
}

// TestTaskWithoutLog checks that a task without a log can be read and cannot append.
func TestTaskWithoutLog(t *testing.T) {
	task := looseTask(&harnessv1.StepInput{Namespace: "n", RunId: "r", Version: 4, Sequence: 9, Step: stepTo("turn")})
	if in := task.Input(); in.GetVersion() != 4 || in.GetSequence() != 9 || in.GetNow() == nil || in.GetStep().GetTo() != "turn" {
		t.Errorf("input %v", in)
	}
	if err := task.AppendJournal(t.Context(), claimed(1), nil, nil); err == nil {
		t.Error("it wrote")
	}
}

// TestAppendJournalNumbersMessages checks that messages of the journal get their ids,
// and that the snapshot of the outcome counts them while the step's snapshot is
// unchanged.
func TestAppendJournalNumbersMessages(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.put(&harnessv1.Record{
		Appended: []*harnessv1.Message{{Id: 8, Content: content.Inline("12345")}},
		Body:     &harnessv1.Record_Journal{Journal: claimed(1)},
	})
	b.deliver(t.Context(), executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
		if !task.Redelivered || len(task.Journal) != 1 || task.Tail().Header.Version != 2 {
			t.Errorf("task %v", task)
		}
		messages := []*harnessv1.Message{{Content: content.Inline("ab")}, {Content: content.Inline("c")}}
		if err := task.AppendJournal(ctx, claimed(2), messages, nil); err != nil {
			return nil, err
		}
		if messages[0].GetId() != 9 || messages[1].GetId() != 10 {
			t.Errorf("numbered %v", messages)
		}
		if s := task.Snapshot(); s.GetMessageCount() != 10 || s.GetTokenBudget().GetUnreportedBytes() != 8 {
			t.Errorf("snapshot counts %d messages, %d bytes", s.GetMessageCount(), s.GetTokenBudget().GetUnreportedBytes())
		}
		if task.Step().GetSnapshot().GetMessageCount() != 7 {
			t.Error("the step was changed")
		}
		return passOn(task), nil
	}}, e, true)
	if records := b.tail(2); len(records) != 2 || records[1].GetStep().GetSnapshot().GetMessageCount() != 10 {
		t.Errorf("stored %v", records)
	}
}

// TestParkSetsVersionAndTimer checks that a committed park contains its version, and
// that its timer was set before under that version.
func TestParkSetsVersionAndTimer(t *testing.T) {
	b := newBed(t)
	for _, c := range []struct{ had, want uint64 }{{0, 2}, {77, 77}} {
		b.run.ID, b.newest = b.run.ID+"x", runlog.Entry{}
		d := b.deliver(t.Context(), executorFunc{"stopdecision", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
			s := task.Snapshot()
			s.ParkVersion = c.had
			return &harnessv1.Outcome{Step: &harnessv1.Step{To: runlog.Park, Snapshot: s, Message: &harnessv1.Step_Parked{Parked: &harnessv1.Parked{
				Reason: &harnessv1.StopReason{Kind: "provider_unavailable"}, WakeAt: timestamppb.New(time.Now()),
			}}}}, nil
		}}, b.step("stopdecision"), false)
		if records := b.tail(1); d.calls() != acked || records[0].GetStep().GetSnapshot().GetParkVersion() != c.want {
			t.Errorf("said %s, stored %v", d.calls(), records)
		}
		// A park that continues has its timer already. The timer of another run fires
		// instead.
		fires := runlog.Run{Namespace: b.run.Namespace, ID: b.run.ID + "-other"}
		if c.had == 0 {
			fires = b.run
		} else if err := b.log.SetTimer(t.Context(), fires, c.want, time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		err := b.log.ConsumeTimers(ctx, func(_ context.Context, run runlog.Run, version uint64) error {
			if run != fires || version != c.want {
				t.Errorf("the timer of %s at %d fired", run, version)
			}
			stop()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// TestFailure checks that a failing executor passes the run to the stop decision, that
// a failing stop decision ends it, and that an ended run stays ended.
func TestFailure(t *testing.T) {
	poison := harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON
	failureOf := func(executor string, step *harnessv1.Step) *harnessv1.Outcome {
		task := looseTask(&harnessv1.StepInput{Step: step})
		task.executor, task.cfg.Now = executor, func() time.Time { return noon }
		outcome := task.failure(poison, "why")
		if err := runstate.CheckPhases(step.GetSnapshot(), outcome.GetStep()); err != nil {
			t.Errorf("%s: %v", executor, err)
		}
		return outcome
	}
	for _, name := range []string{"repair", "compaction", "turn", "mine"} {
		step := failureOf(name, stepTo(name)).GetStep()
		want := &harnessv1.TurnComplete{TurnNumber: 3, Error: &harnessv1.TurnError{Kind: poison, Message: "why"}}
		if step.GetFrom() != name || step.GetTo() != "stopdecision" || !proto.Equal(step.GetTurnComplete(), want) {
			t.Errorf("%s: %v", name, step)
		}
	}
	for _, from := range []*harnessv1.Snapshot{
		{Phase: harnessv1.Phase_PHASE_REFLECTING},
		{Phase: harnessv1.Phase_PHASE_AWAITING_TOOL, PendingToolCalls: []*harnessv1.PendingCall{{CallId: "c"}}},
		{Phase: harnessv1.Phase_PHASE_IDLE, PausedPhase: harnessv1.Phase_PHASE_EXECUTING},
	} {
		from.TurnCount, from.RunningSince = 3, timestamppb.New(noon.Add(-time.Minute))
		outcome := failureOf("stopdecision", &harnessv1.Step{Snapshot: from})
		step, s := outcome.GetStep(), outcome.GetStep().GetSnapshot()
		if step.GetTo() != runlog.End || step.GetResult().GetStatus() != harnessv1.RunStatus_RUN_STATUS_FAILED ||
			step.GetResult().GetReason().GetKind() != "poison" || !runstate.Ended(s) || len(s.GetPendingToolCalls()) > 0 ||
			s.GetSpent().GetActive().AsDuration() != time.Minute || len(outcome.GetEvents()) != 1 || outcome.GetEvents()[0].GetSessionComplete() == nil {
			t.Errorf("from %v: %v", from, outcome)
		}
	}
	ended := &harnessv1.Step{
		Snapshot: &harnessv1.Snapshot{Phase: harnessv1.Phase_PHASE_DONE, Status: harnessv1.RunStatus_RUN_STATUS_DONE, InboxCursor: 4},
		Message:  &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{InboxSequence: 9}},
	}
	outcome := failureOf("repair", ended)
	if s := outcome.GetStep().GetSnapshot(); outcome.GetStep().GetTo() != runlog.End || s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE ||
		s.GetInboxCursor() != 9 || len(outcome.GetEvents()) > 0 {
		t.Errorf("an ended run: %v", outcome)
	}
}

func TestInstancesDiffer(t *testing.T) {
	if a, b := NewInstance(), NewInstance(); a == b || a == "" {
		t.Errorf("%q and %q", a, b)
	}
}

// looseTask returns a task without a loop. It cannot append.
func looseTask(in *harnessv1.StepInput) *Task {
	e := runlog.Entry{
		Run:      runlog.Run{Namespace: in.GetNamespace(), ID: in.GetRunId()},
		Sequence: in.GetSequence(),
		Header:   runlog.Header{Version: in.GetVersion(), Schema: runlog.Schema},
		Record: &harnessv1.Record{
			Namespace: in.GetNamespace(), RunId: in.GetRunId(), Version: in.GetVersion(),
			Body: &harnessv1.Record_Step{Step: in.GetStep()},
		},
	}
	return &Task{Run: e.Run, Entry: e, cfg: Config{}.withDefaults(), tail: e}
}
