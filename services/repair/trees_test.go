package repair_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

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
// works, it gets the order to continue without.
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
	// Another child holds the rest, and then returns it.
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

// TestRefusedCallsHaveErrorResults: a call that waits for a run gets an error once the parent has refused more, also one in the background.
func TestRefusedCallsHaveErrorResults(t *testing.T) {
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

// background returns a run that is parked until its sub-agent in the background ends.
func background(t *testing.T) *harnessv1.Snapshot {
	t.Helper()
	s := delegated("look")
	s.Phase, s.PendingToolCalls, s.Turn.Open, s.Turn.AgentDone = executing, nil, false, true
	s.Children[0].Background = true
	s = drain(t, s).GetStep().GetSnapshot()
	if s.GetPausedPhase() != executing {
		t.Fatalf("it is not paused: %v", s.GetPhase())
	}
	return s
}

// TestParksOutsideAPhase: a run that waits for a graph or for sub-agents in the background is idle, and continues when they have ended.
func TestParksOutsideAPhase(t *testing.T) {
	o := drain(t, background(t), reported("c1", 5, 1, doneRun, "agent_done"))
	if verdict(o) != "compaction" || events(o) != "agent.ended input.accepted session.resume" || len(o.GetAppended()) != 1 {
		t.Errorf("after the end of a sub-agent in the background: %s, %s", verdict(o), events(o))
	}
	if o := drain(t, background(t), reported("c1", 5, 1, parkedRun, "approval")); verdict(o) != "park agent" || strings.Contains(events(o), "session.pause") {
		t.Errorf("after its park: %s, %s", verdict(o), events(o))
	}
	spec := spec()
	spec.Agent.Agents = []*harnessv1.SubAgent{{Name: "look", Description: "Looks.", Instructions: "Look."}}
	spec.Graph = []*harnessv1.GraphTask{{Id: "one", Agent: "look", Prompt: "p"}, {Id: "two", Agent: "look", Prompt: "p", After: []string{"one"}}}
	o = decide(t, first(begun(), spec, nothing()...))
	s := o.GetStep().GetSnapshot()
	if verdict(o) != "park agent" || s.GetPhase() != idle || s.GetPausedPhase() != executing || !strings.HasSuffix(events(o), "subtask.started agent.started session.pause") {
		t.Fatalf("before the first turn: %s in %v, %s", verdict(o), s.GetPhase(), events(o))
	}
	ends := func(s *harnessv1.Snapshot, i int) *harnessv1.Outcome {
		c := s.GetChildren()[i]
		return drain(t, s, reported(c.GetCallId(), 5, 1, doneRun, "agent_done", func(r *harnessv1.ChildReport) { r.RunId = c.GetRunId() }))
	}
	o = ends(s, 0)
	if verdict(o) != "park agent" || events(o) != "agent.ended input.accepted subtask.completed subtask.started agent.started" {
		t.Errorf("between layers: %s, %s", verdict(o), events(o))
	}
	if o = ends(o.GetStep().GetSnapshot(), 1); verdict(o) != "turn" || !strings.HasSuffix(events(o), "subtask.completed session.resume") {
		t.Errorf("after the graph: %s, %s", verdict(o), events(o))
	}
}

// TestStoppingIsAPark outside a phase whose details have it; the stop is committed with a separate reason. The calls stay awaited,
// and a resume continues them in their turn.
func TestStoppingIsAPark(t *testing.T) {
	o := drain(t, delegated("look"), interrupt())
	s := o.GetStep().GetSnapshot()
	if verdict(o) != "park agent" || events(o) != "input.accepted session.pause" || s.GetPhase() != idle || s.GetPausedPhase() != awaiting || !s.GetStopReason().GetDetails().GetStopping() {
		t.Fatalf("stopping: %s in %v, %s: %v", verdict(o), s.GetPhase(), events(o), s.GetStopReason())
	}
	o = drain(t, s, reported("c1", 5, 2, parkedRun, "interrupted"))
	s = o.GetStep().GetSnapshot()
	if verdict(o) != "park interrupted" || events(o) != "input.accepted run.interrupted session.pause" || s.GetPausedPhase() != awaiting || len(runstate.AwaitedCalls(s)) != 1 {
		t.Fatalf("stopped: %s, %s", verdict(o), events(o))
	}
	if o := drain(t, s, reported("c1", 7, 2, doneRun, "agent_done")); verdict(o) != "park interrupted" {
		t.Errorf("the end of a sub-agent resumes an interrupted run: %s", verdict(o))
	}
	o = drain(t, s, resume(nil))
	if s := o.GetStep().GetSnapshot(); verdict(o) != "park agent" || s.GetPhase() != awaiting || events(o) != "input.accepted session.resume" || s.GetRunningSince() == nil || child(o, "c1").GetWant() != work {
		t.Errorf("resumed: %s in %v, %s", verdict(o), s.GetPhase(), events(o))
	}
	if o := drain(t, background(t), interrupt()); !o.GetStep().GetSnapshot().GetStopReason().GetDetails().GetStopping() {
		t.Errorf("a run that waits for sub-agents in the background is not interrupted: %s", verdict(o))
	}
	// An answer does not end the stop.
	o = drain(t, drain(t, delegated("look"), interrupt()).GetStep().GetSnapshot(), reported("c1", 5, 1, doneRun, "agent_done"))
	if verdict(o) != "park interrupted" {
		t.Errorf("the call has a result while the run was stopping: %s", verdict(o))
	}
}

// TestWallClockOfTheTree: the time of a run is used up while its sub-agents work. They halt, and only then the run is parked for it; with
// more time all of them continue.
func TestWallClockOfTheTree(t *testing.T) {
	for name, s := range map[string]*harnessv1.Snapshot{"call": delegated("look"), "background": background(t)} {
		s.Config.Budgets.WallClock = durationpb.New(2 * time.Minute)
		s.RunningSince = timestamppb.New(noon.Add(-time.Minute))
		s = drain(t, s).GetStep().GetSnapshot()
		if at := s.GetWakeAt().AsTime(); !at.Equal(noon.Add(time.Minute)) || s.GetRunningSince() == nil {
			t.Fatalf("%s: it wakes at %v", name, at)
		}
		s.ParkVersion = 40
		o := drain(t, s, timer(40))
		s = o.GetStep().GetSnapshot()
		if c := child(o, "c1"); !s.GetStopReason().GetDetails().GetStopping() || c.GetWant() != halt || c.GetOrder() != 2 {
			t.Fatalf("%s: at its end it is %s, and the sub-agent %v", name, verdict(o), c)
		}
		if slow := drain(t, s, reported("c1", 5, 2, parkedRun, "interrupted")); verdict(slow) != "park budget_exceeded:wall_clock" {
			t.Errorf("%s: with a slow clock %s", name, verdict(slow))
		}
		s.RunningSince = timestamppb.New(noon.Add(-3 * time.Minute))
		o = drain(t, s, reported("c1", 5, 2, parkedRun, "interrupted"))
		s = o.GetStep().GetSnapshot()
		if verdict(o) != "park budget_exceeded:wall_clock" || !strings.Contains(events(o), "budget.warn session.pause") || s.GetRunningSince() != nil {
			t.Fatalf("%s: then %s, %s", name, verdict(o), events(o))
		}
		if o := drain(t, s, resume(nil)); verdict(o) != "park budget_exceeded:wall_clock" || child(o, "c1").GetWant() != halt {
			t.Errorf("%s: resumed without more: %s, %v", name, verdict(o), child(o, "c1"))
		}
		o = drain(t, s, resume(&harnessv1.Budgets{WallClock: durationpb.New(time.Hour)}))
		if c := child(o, "c1"); c.GetWant() != work || c.GetOrder() != 3 {
			t.Errorf("%s: resumed with more: %s, %v", name, verdict(o), c)
		}
	}
}

// TestDeadlineInTheBackground: a sub-agent in the background ends when its deadline passes, whether it was started or not, and the model
// gets a result that names it.
func TestDeadlineInTheBackground(t *testing.T) {
	for _, started := range []bool{true, false} {
		s := background(t)
		c := s.Children[0]
		c.Deadline = timestamppb.New(noon.Add(time.Minute))
		if !started {
			s.Children = append(s.Children, &harnessv1.Child{RunId: "a-c2", CallId: "c2", Agent: "look", Want: work, Order: 1, Sent: 1, Background: true, Writes: true})
			c.Want, c.Order, c.Sent, c.Writes = harnessv1.ChildWant_CHILD_WANT_UNSPECIFIED, 0, 0, true
		}
		s = drain(t, s).GetStep().GetSnapshot()
		if at := s.GetWakeAt().AsTime(); !at.Equal(noon.Add(time.Minute)) {
			t.Fatalf("started %v: it wakes at %v", started, at)
		}
		s.ParkVersion = 40
		o := drain(t, s, timer(40))
		ends := child(o, "c1")
		if verdict(o) != "park agent" || ends.GetWant() != end || !ends.GetOverdue() || ends.GetDeadline() != nil || o.GetStep().GetSnapshot().GetWakeAt() != nil {
			t.Fatalf("started %v: %s, %v", started, verdict(o), ends)
		}
		o = drain(t, o.GetStep().GetSnapshot(), reported("c1", 5, ends.GetOrder(), harnessv1.RunStatus_RUN_STATUS_CANCELLED, "cancelled"))
		if len(o.GetAppended()) != 1 || !strings.Contains(content.Text(o.GetAppended()[0].GetContent()), "The deadline of the call passed") {
			t.Errorf("started %v: %s, %v", started, verdict(o), o.GetAppended())
		}
	}
}

// TestLeasesAreSpentMeanwhile: a run takes no turn with what its sub-agents in the background have leased, and continues with what they
// return.
func TestLeasesAreSpentMeanwhile(t *testing.T) {
	s := background(t)
	s.Status, s.Phase, s.PausedPhase, s.StopReason, s.Turn.AgentDone = harnessv1.RunStatus_RUN_STATUS_RUNNING, executing, harnessv1.Phase_PHASE_UNSPECIFIED, nil, false
	s.Config.Budgets.Tokens = proto.Uint64(30_000)
	s.Children[0].Lease.Tokens = proto.Uint64(25_000)
	if o := drain(t, s); verdict(o) != "compaction" {
		t.Errorf("with some left: %s", verdict(o))
	}
	s.Spent.Usage = &harnessv1.Usage{InputTokens: 5_000}
	o := drain(t, s)
	if verdict(o) != "park agent" || events(o) != "session.pause" {
		t.Fatalf("with nothing left: %s, %s", verdict(o), events(o))
	}
	s = o.GetStep().GetSnapshot()
	used := func(n uint64) func(*harnessv1.ChildReport) {
		return func(r *harnessv1.ChildReport) { r.Usage = &harnessv1.Usage{InputTokens: n} }
	}
	if o := drain(t, s, reported("c1", 5, 1, doneRun, "agent_done", used(1_000))); verdict(o) != "compaction" {
		t.Errorf("with what was returned: %s, %s", verdict(o), events(o))
	}
	if o := drain(t, s, reported("c1", 5, 1, doneRun, "agent_done", used(26_000))); verdict(o) != "park budget_exceeded:tokens" {
		t.Errorf("with nothing returned: %s, %s", verdict(o), events(o))
	}
}

// TestShortCallsInTheBackground: between turns a run asks its parent for the runs that its calls in the background need, and continues
// with what it gets or is refused.
func TestShortCallsInTheBackground(t *testing.T) {
	s := background(t)
	s.Status, s.Phase, s.PausedPhase, s.StopReason, s.Turn.AgentDone = harnessv1.RunStatus_RUN_STATUS_RUNNING, executing, harnessv1.Phase_PHASE_UNSPECIFIED, nil, false
	s.Parent = &harnessv1.Parent{RunId: "up", Order: 1}
	s.Config.Budgets.Runs, s.Spent.Runs = proto.Uint32(1), 1
	s.Children = append(s.Children, &harnessv1.Child{RunId: "a-c2", CallId: "c2", Agent: "look", Background: true, Arguments: content.Inline(`{"prompt":"p"}`)})
	o := drain(t, s)
	if verdict(o) != "park agent" || events(o) != "session.pause" || o.GetStep().GetSnapshot().GetShort() != "runs" {
		t.Fatalf("%s, %s: short of %q", verdict(o), events(o), o.GetStep().GetSnapshot().GetShort())
	}
	s = o.GetStep().GetSnapshot()
	order := func(runs uint32, refused bool) *harnessv1.InboxItem {
		return &harnessv1.InboxItem{Order: 2, Refused: refused, Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: &harnessv1.Budgets{Runs: &runs}}}}
	}
	if o := drain(t, s, order(2, false)); verdict(o) != "compaction" || child(o, "c2").GetOrder() != 1 || !strings.Contains(events(o), "agent.started session.resume") {
		t.Errorf("with more: %s, %s", verdict(o), events(o))
	}
	if o := drain(t, s, order(1, true)); verdict(o) != "compaction" || len(o.GetAppended()) != 1 || !strings.Contains(content.Text(o.GetAppended()[0].GetContent()), "nothing is left") {
		t.Errorf("refused: %s, %v", verdict(o), o.GetAppended())
	}
	if o := drain(t, s, reported("c1", 5, 1, doneRun, "agent_done")); verdict(o) != "compaction" || len(o.GetAppended()) != 1 {
		t.Errorf("with a result: %s, %v", verdict(o), o.GetAppended())
	}
}
