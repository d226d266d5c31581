package repair_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// held is a run whose question belongs to a call that its tool host holds.
func held() *harnessv1.Snapshot {
	s := questioned()
	s.PendingToolCalls[0].Question.LedgerId = "place-1"
	return s
}

// TestHeldCallsAreCancelled: a decision that answers a held call with an error is made only after its
// tool host has cancelled it.
func TestHeldCallsAreCancelled(t *testing.T) {
	const key = runstate.KeyHeld + "round:2:s"
	stopped := held()
	stopped.Turn.Open = false
	blocked := held()
	blocked.Mode, blocked.PendingToolCalls[0].Writes = "plan", true
	for name, c := range map[string]struct {
		s     *harnessv1.Snapshot
		item  *harnessv1.InboxItem
		needs bool
	}{
		"interrupt":            {held(), interrupt(), true},
		"cancel":               {held(), cancel(), true},
		"mode":                 {blocked, result("s", "yes"), true},
		"a turn that stopped":  {stopped, userMessage("go on"), true},
		"answer":               {held(), result("s", "yes"), false},
		"another kind of call": {questioned(), interrupt(), false},
	} {
		c.item.Id, c.item.Sequence = "i", c.s.GetInboxCursor()+1
		in := &harnessv1.StepInput{
			Now: timestamppb.New(noon), Sequence: 99,
			Step: &harnessv1.Step{Snapshot: c.s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE}}},
			Observed: []*harnessv1.Observation{{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{
				Inbox: &harnessv1.InboxBatch{Cursor: c.item.GetSequence(), Items: []*harnessv1.InboxItem{c.item}},
			}}},
		}
		out, err := repair.Decide(in)
		if err != nil {
			t.Fatal(err)
		}
		if needs := out.GetNeeds().GetKeys(); slices.Contains(needs, key) != c.needs {
			t.Errorf("%s: it needs %v", name, needs)
		}
		if !c.needs {
			continue
		}
		in.Observed = append(in.Observed, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Background{Background: &harnessv1.BackgroundStates{}}})
		o := decide(t, in)
		if len(o.GetStep().GetSnapshot().GetPendingToolCalls()) > 0 {
			t.Errorf("%s: %v still waits", name, o.GetStep().GetSnapshot().GetPendingToolCalls())
		}
	}
}

// TestHeldCallsContinueAtTheirDeadline: the server waits for the end of its question, so the call
// continues with a closed one.
func TestHeldCallsContinueAtTheirDeadline(t *testing.T) {
	s := held()
	s.PendingToolCalls[0].Deadline = timestamppb.New(noon.Add(-time.Second))
	s.WakeAt = s.GetPendingToolCalls()[0].GetDeadline()
	o := drain(t, s, timer(s.GetParkVersion()))
	approved := runstate.ApprovedCalls(o.GetStep().GetSnapshot())
	if verdict(o) != "compaction" || len(o.GetAppended()) > 0 || len(approved) != 1 {
		t.Fatalf("%s: %v, %v continue", verdict(o), o.GetAppended(), approved)
	}
	q := approved[0].GetQuestion()
	if len(q.GetResponses()) != 1 || q.GetResponses()[0].GetAction() != harnessv1.AnswerAction_ANSWER_ACTION_CANCEL || q.GetLedgerId() != "place-1" {
		t.Errorf("it continues with %v", q)
	}
	again := drain(t, o.GetStep().GetSnapshot(), result("s", "yes"))
	if events(again) != "input.rejected" && !runstate.Answered(o.GetStep().GetSnapshot(), "round:2:s") {
		t.Errorf("an answer after the deadline: %s", events(again))
	}
}
