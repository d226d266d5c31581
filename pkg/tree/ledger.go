package tree

import (
	"cmp"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Room returns how many children a run may still have in its segment.
func Room(s *harnessv1.Snapshot) int {
	n := len(s.GetChildren())
	return max(0, min(MaxChildren-(n-min(n, int(s.GetSpent().GetChildrenBeforeSegment()))), maxLedger-n))
}

// StartSegment has the children of another segment count from zero, and keeps of those that have ended only what their continuation
// and their deletion need. It changes s.
func StartSegment(s *harnessv1.Snapshot) {
	if len(s.GetChildren()) == 0 {
		return
	}
	runstate.StartChildren(s)
	for _, c := range s.GetChildren() {
		if r := c.GetReport(); Ended(c) && (c.GetTold() || !c.GetBackground()) {
			c.Lease, c.Arguments, c.Deadline, r.Files = nil, nil, nil, nil
			r.Reason = &harnessv1.StopReason{Kind: r.GetReason().GetKind()}
		}
	}
}

// queued reports whether a child has yet to be started, or continued.
func queued(c *harnessv1.Child) bool {
	return c.GetWant() == harnessv1.ChildWant_CHILD_WANT_UNSPECIFIED
}

// Ended reports whether a child has ended, by its newest report.
func Ended(c *harnessv1.Child) bool { return !queued(c) && ended(c.GetReport().GetStatus()) }

func ended(status harnessv1.RunStatus) bool {
	switch status {
	case harnessv1.RunStatus_RUN_STATUS_DONE, harnessv1.RunStatus_RUN_STATUS_STALLED,
		harnessv1.RunStatus_RUN_STATUS_FAILED, harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		return true
	default:
		return false
	}
}

// Idle reports whether nothing of a child works: it was never started, has ended, or has
// confirmed the newest order by a report of a park that does not end by itself.
func Idle(c *harnessv1.Child) bool {
	r := c.GetReport()
	switch {
	case queued(c) || Ended(c):
		return true
	case c.GetWant() == harnessv1.ChildWant_CHILD_WANT_END:
		return false
	}
	return r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED && r.GetOrder() == c.GetOrder() && !passes(r)
}

// passes reports whether a child that is parked, by its report, continues by itself. One that waits
// for sub-agents does not once all of them wait: the reason then names the first. One whose provider's
// key is missing waits for a client, and its report has that.
func passes(r *harnessv1.ChildReport) bool {
	switch reason := r.GetReason(); reason.GetKind() {
	case runstate.KindWait, runstate.KindPoison:
		return true
	case runstate.KindProviderUnavailable:
		return !r.GetNeedsInput()
	case runstate.KindAgent:
		return reason.GetDetails().GetRunId() == ""
	}
	return false
}

// NeedsInput reports whether a run that is parked at a step for an unreachable provider waits for
// a client, because it has no timer.
func NeedsInput(step *harnessv1.Step) bool {
	return step.GetSnapshot().GetStopReason().GetKind() == runstate.KindProviderUnavailable && step.GetParked().GetWakeAt() == nil
}

// Live reports whether something below a run has been started and has not ended.
func Live(s runstate.TreeFields) bool {
	return slices.ContainsFunc(s.GetChildren(), func(c *harnessv1.Child) bool { return !queued(c) && !Ended(c) })
}

// CallOf returns the call that waits for the end of a child; empty for one in the background.
func CallOf(c *harnessv1.Child) string {
	if c.GetBackground() {
		return ""
	}
	return StartedBy(c)
}

// StartedBy returns the call that started a child, or continued it.
func StartedBy(c *harnessv1.Child) string { return cmp.Or(c.GetContinuedBy(), c.GetCallId()) }

// writesShared reports whether a child may change files that others see.
func writesShared(c *harnessv1.Child) bool { return c.GetWrites() && !c.GetWorktree() }

// agentCall returns the call with an id if it waits for sub-agents; else nil.
func agentCall(s runstate.SharedFields, id string) *harnessv1.PendingCall {
	for _, call := range runstate.AwaitedCalls(s) {
		if call.GetCallId() == id && call.GetKind() == runstate.KindAgent {
			return call
		}
	}
	return nil
}

// wanted reports whether the work of a child is still wanted: its call or its graph waits for it,
// or it works in the background.
func wanted(s *harnessv1.Snapshot, c *harnessv1.Child) bool {
	if g, _ := taskOf(s, c); g != nil {
		return true
	}
	return c.GetBackground() || agentCall(s, CallOf(c)) != nil
}

// Wanted returns the children whose work is still wanted.
func Wanted(s *harnessv1.Snapshot) []*harnessv1.Child {
	var all []*harnessv1.Child
	for _, c := range s.GetChildren() {
		if wanted(s, c) {
			all = append(all, c)
		}
	}
	return all
}

// awaited returns the children that a parked run waits for, in the order of its calls; without
// calls those in the background.
func awaited(s *harnessv1.Snapshot) []*harnessv1.Child {
	var all []*harnessv1.Child
	for _, g := range s.GetGraphs() {
		for _, c := range s.GetChildren() {
			if of, _ := taskOf(s, c); of == g {
				all = append(all, c)
			}
		}
	}
	for _, call := range runstate.AwaitedCalls(s) {
		if call.GetKind() != runstate.KindAgent {
			continue
		}
		for _, c := range s.GetChildren() {
			if CallOf(c) == call.GetCallId() || slices.Contains(call.GetDelegation().GetRuns(), c.GetRunId()) {
				all = append(all, c)
			}
		}
	}
	if len(all) == 0 {
		return InBackground(s)
	}
	return all
}

// ChildOf returns the child that a call waits for; nil if it waits for none, or for several.
func ChildOf(s runstate.TreeFields, callID string) *harnessv1.Child {
	for _, c := range s.GetChildren() {
		if callID != "" && CallOf(c) == callID {
			return c
		}
	}
	return nil
}

// Untold returns the children in the background that have ended without that the model knows.
func Untold(s runstate.TreeFields) []*harnessv1.Child {
	var untold []*harnessv1.Child
	for _, c := range s.GetChildren() {
		if c.GetBackground() && Ended(c) && !c.GetTold() {
			untold = append(untold, c)
		}
	}
	return untold
}

// RecordTold records that the model knows of a child's end. It changes c.
func RecordTold(c *harnessv1.Child) {
	c.Told = true
	if c.GetReport() != nil {
		c.Report.Answer = nil
	}
}

// CallArguments returns the arguments of a call that waits for sub-agents; nil if there is none.
func CallArguments(s runstate.SharedFields, id string) *harnessv1.Content {
	return agentCall(s, id).GetArguments()
}

// InBackground returns the children in the background that have not ended, or whose end the
// model does not know.
func InBackground(s runstate.TreeFields) []*harnessv1.Child {
	var all []*harnessv1.Child
	for _, c := range s.GetChildren() {
		if c.GetBackground() && !c.GetTold() {
			all = append(all, c)
		}
	}
	return all
}
