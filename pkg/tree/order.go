package tree

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// order gives a child the next order. A message that was not sent is given with the next order
// to work, and a report of the child before that is of the time before. It changes c.
func order(c *harnessv1.Child, want harnessv1.ChildWant) {
	c.Want = want
	c.Order++
	if c.GetArguments() == nil || c.GetContinuedBy() == "" {
		return
	}
	switch want {
	case harnessv1.ChildWant_CHILD_WANT_WORK:
		c.ContinueOrder = c.GetOrder()
	case harnessv1.ChildWant_CHILD_WANT_HALT:
		c.ContinueOrder = c.GetOrder() + 1
	default:
		c.ContinueOrder, c.Arguments = 0, nil
	}
}

// Stop orders all children to halt or to end. It reports whether nothing below works any more. It changes s.
func Stop(s runstate.TreeFields, want harnessv1.ChildWant) (stopped bool) {
	stopped = true
	for _, c := range s.GetChildren() {
		if queued(c) || Ended(c) {
			continue
		}
		if c.GetWant() != want && c.GetWant() != harnessv1.ChildWant_CHILD_WANT_END {
			order(c, want)
		}
		stopped = stopped && Idle(c)
	}
	return stopped
}

// Continue orders the children to work again whose work is wanted and that the run has halted, and
// with all those too that it wants to work and no order to whom is still to be sent: each may be idle for another reason, or have
// an interrupt in its inbox that no report shows yet. It changes s.
func Continue(s *harnessv1.Snapshot, all bool) {
	for _, c := range Wanted(s) {
		again := all && c.GetWant() == harnessv1.ChildWant_CHILD_WANT_WORK && !due(c)
		if !Ended(c) && !queued(c) && (c.GetWant() == harnessv1.ChildWant_CHILD_WANT_HALT || again) {
			order(c, harnessv1.ChildWant_CHILD_WANT_WORK)
		}
	}
}

// Inherit orders the children to be in plan mode while the run is, and to return to their own when the run leaves it.
// It changes s.
func Inherit(s *harnessv1.Snapshot) {
	plans := runstate.Mode(s) == mode.Plan
	for _, c := range s.GetChildren() {
		if queued(c) || Ended(c) || c.GetWant() == harnessv1.ChildWant_CHILD_WANT_END || c.GetPlans() == plans {
			continue
		}
		alone := c.GetModeOrder() == c.GetOrder() || !due(c) // nothing else is to be sent
		order(c, c.GetWant())
		if c.Plans = plans; alone {
			c.ModeOrder = c.GetOrder()
		}
	}
}

// End orders a child to end. It reports whether the child has been started and has not ended. It changes c.
func End(c *harnessv1.Child) bool {
	if queued(c) || Ended(c) {
		return false
	}
	if c.GetWant() != harnessv1.ChildWant_CHILD_WANT_END {
		order(c, harnessv1.ChildWant_CHILD_WANT_END)
	}
	return true
}

// EndOverdue orders the children in the background, and those of graphs, to end whose deadline has passed; one that has yet to be started
// is not. It changes s.
func EndOverdue(s runstate.TreeFields, now time.Time) {
	for _, c := range s.GetChildren() {
		if c.GetDeadline() == nil || c.GetDeadline().AsTime().After(now) {
			continue
		}
		g, _ := taskOf(s, c)
		c.Deadline = nil
		if (c.GetBackground() || g != nil) && !Ended(c) && c.GetWant() != harnessv1.ChildWant_CHILD_WANT_END {
			c.Overdue = true
			order(c, harnessv1.ChildWant_CHILD_WANT_END)
		}
	}
}

// Extend gives a child more to use up, and orders it to continue. It changes c.
func Extend(c *harnessv1.Child, lease *harnessv1.Budgets) {
	c.Lease = lease
	order(c, harnessv1.ChildWant_CHILD_WANT_WORK)
}

// EndExhausted orders a child to end that has used up a budget of its definition, and reports whether it does. It changes c.
func EndExhausted(c *harnessv1.Child, def *harnessv1.SubAgent) bool {
	budget := exhausted(c, def)
	if budget == "" || !End(c) {
		return false
	}
	c.Exhausted = budget
	return true
}

// Refuse orders a child that lacks runs to continue without. It changes c.
func Refuse(c *harnessv1.Child) {
	order(c, harnessv1.ChildWant_CHILD_WANT_WORK)
	c.RefusedOrder = c.GetOrder()
}

// Due returns the children to whom the orders of a snapshot are to be sent: those that were
// not sent, and no report has confirmed.
func Due(s runstate.TreeFields) []*harnessv1.Child {
	var all []*harnessv1.Child
	for _, c := range s.GetChildren() {
		if due(c) && !Ended(c) {
			all = append(all, c)
		}
	}
	return all
}

// due reports whether the newest order of a child was not sent, and no report has confirmed it.
func due(c *harnessv1.Child) bool { return c.GetOrder() > max(c.GetSent(), c.GetReport().GetOrder()) }

// Sent records that the due orders of a snapshot have been sent. It changes s.
func Sent(s runstate.TreeFields) {
	for _, c := range Due(s) {
		c.Sent = c.GetOrder()
		if c.GetWant() == harnessv1.ChildWant_CHILD_WANT_WORK {
			c.Arguments = nil
		}
	}
}

// Order is how the newest order of a child is sent.
type Order int

const (
	// Start: the child is started unless its run is there.
	Start Order = iota
	// Message: the child is given the prompt of the call that continues it.
	Message
	// Input: the child is given an inbox item.
	Input
)

// OrderOf returns how the newest order of a child is sent. Before an Input the child is started if
// it is wanted to work and its run has never been there.
func OrderOf(c *harnessv1.Child) Order {
	switch {
	case c.GetContinuedBy() != "" && c.GetContinueOrder() == c.GetOrder() && c.GetWant() == harnessv1.ChildWant_CHILD_WANT_WORK:
		return Message
	case c.GetOrder() < 2:
		return Start
	default:
		return Input
	}
}

// WasThere reports whether a child's run has been there, by its reports.
func WasThere(c *harnessv1.Child) bool {
	return c.GetReport() != nil && c.GetReport().GetVersion() > 0
}

// Took reports whether a child with a snapshot has taken the newest order, or a later one.
func Took(s runstate.DefinitionFields, c *harnessv1.Child) bool {
	return s.GetParent().GetOrder() >= c.GetOrder()
}

// OrderItem returns the inbox item that gives a child its newest order, which is not the
// start. prompt is that of a Message, stored for the child.
func OrderItem(parent runlog.Run, c *harnessv1.Child, prompt *harnessv1.Content) *harnessv1.InboxItem {
	item := &harnessv1.InboxItem{Id: "order-" + parent.ID + "-" + decimal(uint64(c.GetOrder())), Order: c.GetOrder(), Plans: c.GetPlans()}
	if c.GetModeOrder() == c.GetOrder() {
		to := &harnessv1.ModeChange{} // the child's own
		if c.GetPlans() {
			to.Mode = mode.Plan
		}
		item.Input = &harnessv1.InboxItem_ModeChange{ModeChange: to}
		return item
	}
	switch c.GetWant() {
	case harnessv1.ChildWant_CHILD_WANT_HALT:
		item.Input = &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{Reason: "The run that started it was interrupted."}}
	case harnessv1.ChildWant_CHILD_WANT_END:
		reason := "The run that started it wants it no more."
		switch {
		case c.GetOverdue():
			reason = "The deadline of its call has passed."
		case c.GetExhausted() != "":
			reason = exhaustedText(c)
		}
		item.Input = &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{Reason: reason}}
	default:
		if prompt != nil {
			item.Lease = c.GetLease()
			item.Input = &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{Content: prompt}}
			break
		}
		item.Refused = c.GetRefusedOrder() == c.GetOrder()
		item.Input = &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: c.GetLease()}}
	}
	return item
}

// AbsentItem returns the inbox item by which the sender of an order reports that there is no
// such run: it was deleted, or, if it was to halt or to end, never started.
func AbsentItem(parent runlog.Run, c *harnessv1.Child) *harnessv1.InboxItem {
	r := &harnessv1.ChildReport{
		RunId: c.GetRunId(), CallId: c.GetCallId(), Order: c.GetOrder(), Status: harnessv1.RunStatus_RUN_STATUS_CANCELLED, Absent: true,
		Reason: &harnessv1.StopReason{Kind: "absent", Message: "The run was deleted."},
	}
	if !WasThere(c) {
		r.Reason.Message = "It was stopped before it had started."
		if c.GetWant() == harnessv1.ChildWant_CHILD_WANT_HALT {
			r.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
		}
	}
	return &harnessv1.InboxItem{Id: "absent-" + c.GetRunId() + "-" + decimal(uint64(c.GetOrder())) + "-" + parent.ID, Input: &harnessv1.InboxItem_ChildReport{ChildReport: r}}
}

// StateOf returns what a child sees of its parent. parent is the parent's newest step; nil
// if there is none.
func StateOf(p *harnessv1.Parent, parent *harnessv1.Step) *harnessv1.ParentState {
	s := parent.GetSnapshot()
	if s == nil || runstate.Expired(s) || s.GetFirstSequence() != p.GetFirstSequence() {
		return &harnessv1.ParentState{Gone: s == nil || runstate.Expired(s)}
	}
	c := Find(s, p.GetCallId())
	return &harnessv1.ParentState{Waits: c != nil && wanted(s, c) && !runstate.Ended(s), Want: c.GetWant(), Order: c.GetOrder(), Plans: runstate.Mode(s) == mode.Plan}
}

// CallWaits reports whether the call of a child still waits for it, or its caller has yet to read what it
// has done in the background. parent is the parent's newest step; nil if there is none.
func CallWaits(p *harnessv1.Parent, parent *harnessv1.Step) bool {
	return p != nil && StateOf(p, parent).GetWaits() && !Find(parent.GetSnapshot(), p.GetCallId()).GetTold()
}

// newest returns the report that replaces before; nil if r is not newer.
func newest(before, r *harnessv1.ChildReport) *harnessv1.ChildReport {
	if r.GetAbsent() {
		if r.GetOrder() <= before.GetOrder() {
			return nil
		}
		r = proto.CloneOf(r)
		r.Version, r.Turns, r.Usage, r.Runs, r.Files = before.GetVersion(), before.GetTurns(), before.GetUsage(), before.GetRuns(), before.GetFiles()
		return r
	}
	if r.GetVersion() <= before.GetVersion() {
		return nil
	}
	return proto.CloneOf(r)
}
