package repair_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	idle      = harnessv1.Phase_PHASE_IDLE
	executing = harnessv1.Phase_PHASE_EXECUTING
	awaiting  = harnessv1.Phase_PHASE_AWAITING_TOOL
	done      = harnessv1.Phase_PHASE_DONE
)

// running is a run between two turns.
func running() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: executing, TurnCount: 2, MaxTurns: 50, MessageCount: 9, Segment: 1, InboxCursor: 10,
		Turn: &harnessv1.TurnState{Number: 2}, Workflow: workflow.Default(), Config: runstate.Resolve(nil, 0), Spent: &harnessv1.Spent{},
		RunningSince: timestamppb.New(noon.Add(-time.Minute)), GoalPreview: "the goal",
	}
}

func parked(kind string) *harnessv1.Snapshot {
	s := running()
	s.Status, s.Phase, s.PausedPhase, s.RunningSince = harnessv1.RunStatus_RUN_STATUS_PARKED, idle, executing, nil
	s.StopReason, s.ParkVersion = &harnessv1.StopReason{Kind: kind}, 40
	return s
}

// waiting is a run whose turn 3 waits for two approvals.
func waiting() *harnessv1.Snapshot {
	s := parked("approval")
	s.Phase, s.PausedPhase = awaiting, harnessv1.Phase_PHASE_UNSPECIFIED
	s.Turn = &harnessv1.TurnState{Number: 3, Open: true}
	for _, id := range []string{"a", "b"} {
		s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{
			CallId: id, Tool: "run_command", Kind: "approval", TurnNumber: 3, Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL,
		})
	}
	return s
}

func ended(status harnessv1.RunStatus) *harnessv1.Snapshot {
	s := running()
	s.Status, s.Phase, s.RunningSince, s.StopReason = status, done, nil, &harnessv1.StopReason{Kind: "agent_done"}
	return s
}

func finished() *harnessv1.Snapshot  { return ended(harnessv1.RunStatus_RUN_STATUS_DONE) }
func cancelled() *harnessv1.Snapshot { return ended(harnessv1.RunStatus_RUN_STATUS_CANCELLED) }

// poison is a run that the harness has put aside.
func poison() *harnessv1.Snapshot {
	s := ended(harnessv1.RunStatus_RUN_STATUS_FAILED)
	s.StopReason.Kind = "poison"
	return s
}

func userMessage(text string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(text)}}}
}

func approve(id string, decision harnessv1.ApprovalDecision) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Approval{Approval: &harnessv1.Approval{CallId: id, Decision: decision}}}
}

func interrupt() *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{}}}
}

func resume(b *harnessv1.Budgets) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: b}}}
}

func cancel() *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}}
}

func timer(version uint64) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_TimerFired{TimerFired: &harnessv1.TimerFired{ParkVersion: version}}}
}

const (
	once = harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE
	all  = harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN
	deny = harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY
)

// drain lets repair take in items, numbered from the cursor on. Repair decides
// twice, on an input that must stay unchanged.
func drain(t *testing.T, s *harnessv1.Snapshot, items ...*harnessv1.InboxItem) *harnessv1.Outcome {
	t.Helper()
	batch := &harnessv1.InboxBatch{Cursor: s.GetInboxCursor()}
	for i, item := range items {
		item = proto.CloneOf(item)
		if item.GetId() == "" {
			item.Id = fmt.Sprintf("i%d-%d", s.GetInboxCursor(), i)
		}
		batch.Cursor++
		item.Sequence = batch.GetCursor()
		batch.Items = append(batch.Items, item)
	}
	return decide(t, &harnessv1.StepInput{
		Now: timestamppb.New(noon), Sequence: 99,
		Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE,
		}}},
		Observed: []*harnessv1.Observation{{Key: repair.NeedFolder, Value: &harnessv1.Observation_Environment{Environment: &harnessv1.Environment{Folder: s.GetFolder()}}}, {Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: batch}}},
	})
}

func decide(t *testing.T, in *harnessv1.StepInput) *harnessv1.Outcome {
	t.Helper()
	before := proto.CloneOf(in)
	out, err := repair.Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := repair.Decide(in)
	if err != nil || !bytes.Equal(encode(t, out), encode(t, again)) {
		t.Fatalf("decided otherwise the second time: %v", err)
	}
	if !proto.Equal(in, before) {
		t.Fatal("the input was changed")
	}
	o := out.GetOutcome()
	if err := runstate.CheckPhases(in.GetStep().GetSnapshot(), o.GetStep()); err != nil {
		t.Fatal(err)
	}
	next := in.GetStep().GetSnapshot().GetMessageCount()
	for _, m := range o.GetAppended() {
		if next++; m.GetId() != next {
			t.Fatalf("message %d is at %d", m.GetId(), next)
		}
	}
	return o
}

func encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// verdict is where the run goes: an executor, or a rest and why.
func verdict(o *harnessv1.Outcome) string {
	step := o.GetStep()
	switch step.GetTo() {
	case runlog.Park:
		return "park " + step.GetParked().GetReason().GetKind()
	case runlog.End:
		return "end " + strings.TrimPrefix(step.GetResult().GetStatus().String(), "RUN_STATUS_")
	}
	return step.GetTo()
}

// events are the names of the events, with what input.rejected is about.
func events(o *harnessv1.Outcome) string {
	var names []string
	for _, e := range o.GetEvents() {
		r := e.ProtoReflect()
		names = append(names, strings.Replace(string(r.WhichOneof(r.Descriptor().Oneofs().ByName("event")).Name()), "_", ".", 1))
	}
	return strings.Join(names, " ")
}
