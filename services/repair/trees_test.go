package repair_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

const (
	parkedRun = harnessv1.RunStatus_RUN_STATUS_PARKED
	doneRun   = harnessv1.RunStatus_RUN_STATUS_DONE
	work      = harnessv1.ChildWant_CHILD_WANT_WORK
	halt      = harnessv1.ChildWant_CHILD_WANT_HALT
	end       = harnessv1.ChildWant_CHILD_WANT_END
)

// delegated is a run whose turn 3 waits for a call of each sub-agent, which works. The call of the n-th is c1, c2 and so on, its run
// a-c1, a-c2 and so on.
func delegated(agents ...string) *harnessv1.Snapshot {
	s := parked(runstate.KindAgent)
	s.Phase, s.PausedPhase = awaiting, harnessv1.Phase_PHASE_UNSPECIFIED
	s.Turn = &harnessv1.TurnState{Number: 3, Open: true}
	s.StopReason.Details = &harnessv1.StopDetails{Turn: 3}
	s.Definition = &harnessv1.Definition{Agents: []*harnessv1.SubAgent{
		{Name: "look", Description: "Looks.", Instructions: "Look.", ReadOnly: proto.Bool(true)},
		{Name: "lead", Description: "Leads.", Instructions: "Lead.", ReadOnly: proto.Bool(true), Agents: []*harnessv1.SubAgent{{Name: "explore"}}},
	}}
	for i, name := range agents {
		id := "c" + string(rune('1'+i))
		s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{
			CallId: id, Tool: name, Kind: runstate.KindAgent, Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, TurnNumber: 3,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT, Reads: true, Explores: true, Arguments: content.Inline(`{"prompt":"p"}`),
		})
		s.Children = append(s.Children, &harnessv1.Child{RunId: "a-" + id, CallId: id, Agent: name, Want: work, Order: 1, Sent: 1, Lease: &harnessv1.Budgets{}})
	}
	return s
}

// reported is a report of the child of a call that has taken the order.
func reported(call string, version uint64, order uint32, status harnessv1.RunStatus, kind string, edit ...func(*harnessv1.ChildReport)) *harnessv1.InboxItem {
	r := &harnessv1.ChildReport{
		RunId: "a-" + call, CallId: call, Version: version, Order: order, Status: status, Accepted: status == doneRun,
		Reason: &harnessv1.StopReason{Kind: kind, Message: kind + "."}, Answer: content.Inline("It is so."),
	}
	for _, e := range edit {
		e(r)
	}
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ChildReport{ChildReport: r}}
}

// child returns the child of a call.
func child(o *harnessv1.Outcome, call string) *harnessv1.Child {
	for _, c := range o.GetStep().GetSnapshot().GetChildren() {
		if c.GetCallId() == call {
			return c
		}
	}
	return nil
}

// TestAgentWaitingIsReported once, when a sub-agent begins to wait for an answer, and not when it passes by itself or its caller has
// halted it.
func TestAgentWaitingIsReported(t *testing.T) {
	o := drain(t, delegated("look", "look"), reported("c1", 5, 1, parkedRun, "approval"))
	waits := o.GetEvents()[0].GetAgentWaiting()
	if events(o) != "agent.waiting input.accepted" || waits.GetRunId() != "a-c1" || waits.GetCallId() != "c1" || waits.GetAgent() != "look" ||
		waits.GetReason().GetKind() != "approval" || waits.GetChildVersion() != 5 {
		t.Errorf("%s: %v", events(o), waits)
	}
	if again := drain(t, o.GetStep().GetSnapshot(), reported("c1", 7, 1, parkedRun, "approval")); events(again) != "input.accepted" {
		t.Errorf("the same again: %s", events(again))
	}
	if other := drain(t, o.GetStep().GetSnapshot(), reported("c1", 7, 1, parkedRun, "question")); !strings.HasPrefix(events(other), "agent.waiting") {
		t.Errorf("for another reason: %s", events(other))
	}
	for _, kind := range []string{"wait", "provider_unavailable", runstate.KindAgent} {
		if o := drain(t, delegated("look"), reported("c1", 5, 1, parkedRun, kind)); events(o) != "input.accepted" {
			t.Errorf("%s: %s", kind, events(o))
		}
	}
	halted := delegated("look")
	halted.Children[0].Want, halted.Children[0].Order = halt, 2
	if o := drain(t, halted, reported("c1", 5, 2, parkedRun, "interrupted")); events(o) != "input.accepted" {
		t.Errorf("halted: %s", events(o))
	}
}

// TestRunsFlowDown: a child that is short of runs for a call gets more while it works; if there is none up to the root and nothing
// works, it is told to continue without.
func TestRunsFlowDown(t *testing.T) {
	leads := func(budget uint32, children ...string) *harnessv1.Snapshot {
		s := delegated(children...)
		s.Config.Budgets.Runs, s.Spent.Runs = &budget, uint32(len(children))
		for _, c := range s.GetChildren() {
			c.Lease.Runs = proto.Uint32(1)
		}
		return s
	}
	short := func(r *harnessv1.ChildReport) { r.Short, r.Runs = "runs", 1 }
	o := drain(t, leads(9, "lead"), reported("c1", 5, 1, parkedRun, runstate.KindAgent, short))
	if c := child(o, "c1"); c.GetOrder() != 2 || c.GetLease().GetRuns() != 2 || c.GetRefusedOrder() != 0 || verdict(o) != "park agent" {
		t.Errorf("%s: %v", verdict(o), c)
	}
	// Another child holds what is left, and then returns it.
	o = drain(t, leads(4, "lead", "lead"), reported("c1", 5, 1, parkedRun, "budget_exceeded:runs", short))
	if c := child(o, "c1"); c.GetOrder() != 1 || events(o) != "agent.waiting input.accepted" {
		t.Errorf("while another works: %v", c)
	}
	o = drain(t, o.GetStep().GetSnapshot(), reported("c2", 7, 1, doneRun, "agent_done"))
	if c := child(o, "c1"); c.GetOrder() != 2 || c.GetLease().GetRuns() != 2 {
		t.Errorf("once it has ended: %v", c)
	}
	o = drain(t, leads(2, "lead"), reported("c1", 5, 1, parkedRun, "budget_exceeded:runs", short))
	if c := child(o, "c1"); c.GetOrder() != 2 || c.GetRefusedOrder() != 2 || c.GetWant() != work {
		t.Errorf("nothing is left: %v", c)
	}
	middle := leads(1, "lead")
	middle.Parent = &harnessv1.Parent{RunId: "up", Order: 1}
	o = drain(t, middle, reported("c1", 5, 1, parkedRun, "budget_exceeded:runs", short))
	if c := child(o, "c1"); c.GetOrder() != 1 || o.GetStep().GetSnapshot().GetShort() != "runs" || verdict(o) != "park budget_exceeded:runs" {
		t.Errorf("in a run with a parent: %s, %v", verdict(o), c)
	}
	refused := &harnessv1.InboxItem{Order: 2, Refused: true, Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: &harnessv1.Budgets{Runs: proto.Uint32(1)}}}}
	o = drain(t, o.GetStep().GetSnapshot(), refused)
	if c := child(o, "c1"); c.GetOrder() != 2 || c.GetRefusedOrder() != 2 {
		t.Errorf("its parent has refused more: %v", c)
	}
}

// TestRefusedCallsAreAnswered: a call that waits for a run gets an error once the parent has refused more, also one in the background.
func TestRefusedCallsAreAnswered(t *testing.T) {
	for _, background := range []bool{false, true} {
		s := delegated("look")
		s.Parent = &harnessv1.Parent{RunId: "up", Order: 1}
		s.Config.Budgets.Runs, s.Short = proto.Uint32(0), "runs"
		c := s.Children[0]
		c.Want, c.Order, c.Sent, c.Background = harnessv1.ChildWant_CHILD_WANT_UNSPECIFIED, 0, 0, background
		if background {
			s.PendingToolCalls = nil
		}
		o := drain(t, s, &harnessv1.InboxItem{Order: 2, Refused: true, Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{}}})
		if len(o.GetAppended()) != 1 || !strings.Contains(content.Text(o.GetAppended()[0].GetContent()), "nothing is left of this run's budget") {
			t.Errorf("background %v: %s, %v", background, verdict(o), o.GetAppended())
		}
		if got := o.GetStep().GetSnapshot(); got.GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING || len(runstate.AwaitedCalls(got)) != 0 {
			t.Errorf("background %v: it is %v", background, got.GetStatus())
		}
	}
}
