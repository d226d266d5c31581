package repair

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// run returns the run of the decision.
func (d *decision) run() runlog.Run {
	return runlog.Run{Namespace: d.in.GetNamespace(), ID: d.in.GetRunId()}
}

// seeParent takes in what a child that starts has seen of its parent, which may want
// something else by now, or may be gone. state is nil for a root.
func (d *decision) seeParent(state *harnessv1.ParentState) {
	p := d.s.GetParent()
	switch {
	case p == nil:
	case !state.GetWaits():
		d.cancel = &harnessv1.Cancel{Reason: "parent_gone: the run that started it no longer waits for it"}
	case state.GetWant() == harnessv1.ChildWant_CHILD_WANT_END:
		p.Order = max(p.GetOrder(), state.GetOrder())
		d.cancel = &harnessv1.Cancel{Reason: "The run that started it wants it no more."}
	case state.GetWant() == harnessv1.ChildWant_CHILD_WANT_HALT:
		p.Order, p.Halted = max(p.GetOrder(), state.GetOrder()), true
		d.halted = true
	default:
		p.Order = max(p.GetOrder(), state.GetOrder())
	}
}

// applyOrder takes an order of the parent, unless a newer one was taken.
func (d *decision) applyOrder(item *harnessv1.InboxItem) (kind, refusal string) {
	kind = "order"
	p := d.s.GetParent()
	switch {
	case p == nil:
		return kind, "the run has no parent"
	case item.GetOrder() <= p.GetOrder():
		return kind, "a newer order was taken before"
	}
	p.Order, p.Halted, d.halted = item.GetOrder(), false, false
	if runstate.Ended(d.s) {
		return kind, ""
	}
	switch input := item.GetInput().(type) {
	case *harnessv1.InboxItem_Interrupt:
		p.Halted, d.halted = true, true
	case *harnessv1.InboxItem_Cancel:
		d.cancel, d.canceller = input.Cancel, d.caller
	case *harnessv1.InboxItem_Resume:
		runstate.ExtendBudgets(d.s, input.Resume.GetBudgets())
		d.interrupt, d.resumed = nil, "resume"
	default:
		return kind, "this program does not know such an order"
	}
	return kind, ""
}

// applyReport takes in what a child reports. One that has ended answers its call.
func (d *decision) applyReport(r *harnessv1.ChildReport) (refusal string, err error) {
	c := tree.Take(d.s, r)
	switch {
	case c == nil:
		return "it is not a newer report of a child of this run", nil
	case runstate.Ended(d.s):
		return "", nil
	case tree.Ended(c):
		return "", d.endAgent(c, r.GetAnswer())
	case strings.HasPrefix(r.GetReason().GetKind(), "budget_exceeded:"):
		d.extend(c)
	}
	return "", nil
}

// endAgent answers the call of a child that has ended.
func (d *decision) endAgent(c *harnessv1.Child, answer *harnessv1.Content) error {
	call := find(runstate.AwaitedCalls(d.s), c.GetCallId())
	if call == nil {
		return nil // it has its result
	}
	said, err := d.text(answer)
	if err != nil {
		return err
	}
	text, failed := tree.ResultText(c, said)
	d.Emit(event.AgentEnded(c))
	runstate.RecordAnswer(d.s, call.GetCallId(), d.item)
	if err := d.answerFromOutside(call, content.Inline(text), &harnessv1.ToolAnswer{
		CallId: call.GetCallId(), Result: content.Inline(said), IsError: failed,
	}); err != nil {
		return err
	}
	d.resumeIfAnswered("agent")
	return nil
}

// extend gives a child that has used up its lease more, if the run has more.
func (d *decision) extend(c *harnessv1.Child) {
	if d.s.GetStopping() != nil || c.GetWant() != harnessv1.ChildWant_CHILD_WANT_WORK {
		return
	}
	if lease, ok := tree.More(d.s, tree.Lookup(d.made.Agents, c.GetAgent()), c); ok {
		tree.Extend(c, lease)
	}
}

// overdue has the child of a call end whose deadline has passed. It reports whether the
// call waits for that; false: the child was never started.
func (d *decision) overdue(call *harnessv1.PendingCall) bool {
	c := tree.Find(d.s, call.GetCallId())
	if c.GetOrder() == 0 {
		return false
	}
	call.Deadline, c.Overdue = nil, true
	tree.End(c)
	return true
}

// routeTree decides where a run goes that has a parent or children: it stops only once
// everything below it has, and works only while its parent wants it to.
func (d *decision) routeTree() (decided bool, err error) {
	s := d.s
	if runstate.Ended(s) || s.GetParent() == nil && len(s.GetChildren()) == 0 {
		return false, nil
	}
	stopping := s.GetStopping()
	switch {
	case d.cancel != nil:
	case stopping.GetCancel() != nil:
		d.cancel, d.canceller = stopping.GetCancel(), stopping.GetCaller()
	case d.resumed != "" && d.interrupt == nil && !d.halted:
	case stopping.GetInterrupt() != nil && d.interrupt == nil:
		d.interrupt, d.interrupter = stopping.GetInterrupt(), stopping.GetCaller()
	}
	if d.halted && d.interrupt == nil {
		d.interrupt = &harnessv1.Interrupt{Reason: "The run that started it was interrupted."}
	}
	s.Stopping = nil
	switch {
	case d.cancel != nil:
		if !tree.Stop(s, harnessv1.ChildWant_CHILD_WANT_END) {
			return true, d.parkStopping(&harnessv1.Stopping{Cancel: d.cancel, Caller: d.canceller})
		}
		return false, nil
	case d.interrupt != nil:
		if !tree.Stop(s, harnessv1.ChildWant_CHILD_WANT_HALT) {
			return true, d.parkStopping(&harnessv1.Stopping{Interrupt: d.interrupt, Caller: d.interrupter})
		}
		d.halted = d.halted || s.GetParent().GetHalted()
		return false, nil
	case s.GetParent().GetHalted() && s.GetPausedPhase() != unpaused:
		return true, d.park() // until its parent wants it to work
	}
	if d.resumed == "resume" || d.resumed == causeMessage {
		for _, c := range tree.Awaited(s) {
			if strings.HasPrefix(c.GetReport().GetReason().GetKind(), "budget_exceeded:") && tree.Idle(c) {
				d.extend(c)
			}
		}
		tree.Continue(s, d.resumed == "resume")
	}
	d.delegate()
	return false, nil
}

// delegate starts the sub-agents that may work now.
func (d *decision) delegate() {
	started, broke := tree.Schedule(d.s, d.made.Agents)
	for _, c := range started {
		d.Emit(event.AgentStarted(c))
	}
	for _, c := range broke {
		if call := find(runstate.AwaitedCalls(d.s), c.GetCallId()); call != nil {
			runstate.RecordAnswer(d.s, call.GetCallId(), "")
			d.repairCall(call, tree.BrokeText, "not started")
		}
	}
	if len(broke) > 0 {
		d.resumeIfAnswered("agent")
	}
}

// parkStopping parks the run until everything below it has stopped.
func (d *decision) parkStopping(stopping *harnessv1.Stopping) error {
	d.s.Stopping = proto.CloneOf(stopping)
	d.s.StopReason, d.s.ParkVersion, d.s.WakeAt = tree.WaitReason(d.s, d.Turn), 0, nil
	return d.park()
}
