package tree

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Reply is the result that a call gets immediately.
type Reply struct {
	Text   string
	Failed bool
}

// Accept has a call of a sub-agent, of agent_wait or of delegate wait from now on for children,
// which Schedule starts. It returns the answer of a call that does not wait; nil for one that
// does. It changes s and call.
func Accept(s *harnessv1.Snapshot, run runlog.Run, call *harnessv1.PendingCall, agents []*harnessv1.SubAgent, now time.Time) *Reply {
	call.Class, call.Kind, call.Deadline = harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, runstate.KindAgent, nil
	d := call.GetDelegation()
	switch call.GetTool() {
	case AgentWait:
		return acceptWait(s, d)
	case Delegate:
		s.Graphs = append(s.Graphs, newGraph(call.GetCallId(), d.GetTasks()))
		return nil
	}
	def := Lookup(agents, call.GetTool())
	if def.GetDeadline() != nil && !d.GetBackground() {
		call.Deadline = timestamppb.New(now.Add(def.GetDeadline().AsDuration()))
	}
	c := &harnessv1.Child{
		RunId: ID(run, s.GetFirstSequence(), call.GetCallId()), CallId: call.GetCallId(), Agent: def.GetName(), Writes: !def.GetReadOnly(),
		Worktree: d.GetIsolate() || def.GetWorkspace() == Worktree,
	}
	if d.GetContinueRun() != "" {
		if c = FindRun(s, d.GetContinueRun()); c == nil || !Ended(c) {
			return &Reply{Text: fmt.Sprintf("Sub-agent run %s works already; wait for its end.", d.GetContinueRun()), Failed: true}
		}
		c.Want, c.ContinuedBy, c.Told, c.Overdue, c.Exhausted, c.Deadline = harnessv1.ChildWant_CHILD_WANT_UNSPECIFIED, call.GetCallId(), false, false, "", nil
		c.UsageBefore, c.RunsBefore, c.Arguments = proto.CloneOf(c.GetReport().GetUsage()), c.GetReport().GetRuns(), proto.CloneOf(call.GetArguments())
	} else {
		s.Children = append(s.Children, c)
	}
	if c.Background = d.GetBackground(); !c.GetBackground() {
		return nil
	}
	if def.GetDeadline() != nil {
		c.Deadline = timestamppb.New(now.Add(def.GetDeadline().AsDuration()))
	}
	c.Arguments = proto.CloneOf(call.GetArguments())
	return &Reply{Text: fmt.Sprintf("The sub-agent works in the background as run %s. Its result comes as a message. "+
		"%s waits for it.", c.GetRunId(), AgentWait)}
}

// acceptWait has a call of agent_wait wait unless all that it names has ended.
func acceptWait(s runstate.TreeFields, d *harnessv1.Delegation) *Reply {
	if slices.ContainsFunc(d.GetRuns(), func(id string) bool {
		c := FindRun(s, id)
		return c != nil && (!Ended(c) || !c.GetTold())
	}) {
		return nil
	}
	return &Reply{Text: "These sub-agents have ended, and you have their results."}
}

// Waited returns the calls of agent_wait that need not wait any more, because one of the
// runs that they name has ended.
func Waited(s *harnessv1.Snapshot) []*harnessv1.PendingCall {
	var over []*harnessv1.PendingCall
	for _, call := range runstate.AwaitedCalls(s) {
		if call.GetKind() == runstate.KindAgent && slices.ContainsFunc(call.GetDelegation().GetRuns(), func(id string) bool {
			c := FindRun(s, id)
			return c != nil && Ended(c)
		}) {
			over = append(over, call)
		}
	}
	return over
}

// Batch is what Schedule has decided.
type Batch struct {
	// Events report what started and which layers of graphs ended.
	Events []*harnessv1.Event
	// Broke are the children for which nothing is left of the budgets, apart from those of graphs.
	Broke []*harnessv1.Child
}

// Schedule starts the children that are wanted and may work now, in the order of their
// calls: at most MaxAtWork, and one at a time of those that write to the same files. It ends and
// starts layers of graphs. A child for which nothing is left of the budgets of a run with a parent keeps waiting for its start, because
// the parent may give more, unless final is true: the parent has refused that. agents are the run's sub-agents. It changes s.
func Schedule(s *harnessv1.Snapshot, run runlog.Run, agents []*harnessv1.SubAgent, final bool, now time.Time) Batch {
	var all Batch
	if s.GetStopping() != nil {
		return all
	}
	final = final || s.GetParent() == nil
	if s.Short = ""; !final {
		s.Short = lacking(s)
	}
	for {
		for _, g := range s.GetGraphs() {
			all.Events = append(all.Events, advance(s, run, g, agents, now)...)
		}
		if again := start(s, agents, final, &all); !again {
			return all
		}
	}
}

// start starts queued children. It reports whether a task of a graph has failed for want of a budget.
func start(s *harnessv1.Snapshot, agents []*harnessv1.SubAgent, final bool, all *Batch) (failed bool) {
	working, writing := 0, false
	for _, c := range s.GetChildren() {
		if !queued(c) && !Ended(c) {
			working++
			writing = writing || writesShared(c)
		}
	}
	for _, c := range Wanted(s) {
		if !queued(c) || working >= MaxAtWork || writesShared(c) && writing {
			continue
		}
		lease, broke := Lease(s, Lookup(agents, c.GetAgent()), c)
		if broke != "" && !final {
			s.Short = cmp.Or(s.GetShort(), broke)
			continue
		}
		if broke != "" {
			if broke == "runs" && s.GetParent() == nil {
				runstate.RefuseRun(s)
			}
			if _, task := taskOf(s, c); task != nil {
				endTask(task, false, BrokeText)
				failed = true
			} else {
				unqueue(c)
				all.Broke = append(all.Broke, c)
			}
			continue
		}
		c.Lease = lease
		if c.GetContinuedBy() != "" {
			c.Report.Status, c.ContinueOrder = harnessv1.RunStatus_RUN_STATUS_RUNNING, c.GetOrder()+1
		} else {
			runstate.AddRuns(s, 1)
		}
		c.Plans = runstate.Mode(s) == mode.Plan
		order(c, harnessv1.ChildWant_CHILD_WANT_WORK)
		working++
		writing = writing || writesShared(c)
		all.Events = append(all.Events, started(c))
	}
	return failed
}

// lacking returns the budget of which a child needs more than the run has for it; empty if none does.
func lacking(s *harnessv1.Snapshot) string {
	for _, c := range Wanted(s) {
		if !queued(c) && !Ended(c) && c.GetWant() == harnessv1.ChildWant_CHILD_WANT_WORK && c.GetReport().GetOrder() == c.GetOrder() && Lacks(c) != "" {
			return Lacks(c)
		}
	}
	return ""
}

// unqueue gives up the start of a child, or its continuation. It changes c.
func unqueue(c *harnessv1.Child) {
	c.Background, c.Arguments, c.Deadline = false, nil, nil
	if c.GetContinuedBy() != "" { // it has ended before
		c.Want = harnessv1.ChildWant_CHILD_WANT_WORK
	}
}
