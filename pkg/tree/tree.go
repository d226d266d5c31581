// Package tree decides about trees of runs: an agent delegates work to a sub-agent by a
// call, and the call is a separate run, the child of the run that made it.
//
// The call waits as a call of a client's tool does, with kind runstate.KindAgent, so that
// no worker is held while the child works. Two registers keep each pair of parent and
// child together:
//
//   - Orders go down. They are state of the parent's snapshot (Child.want, Child.order):
//     when repair is delivered a step of the parent to park or end, it sends those that
//     no report has confirmed, the start included (Due). A child takes an order only if its number is
//     greater than that of the last one that it took.
//   - Reports go up. When repair is delivered a step of the child to park or end, it appends one
//     to the parent's inbox before it acknowledges the step (ReportOf). Reports are cumulative:
//     the one with the greatest version counts (Take).
//
// A start may be repeated and may come late: the id of a child is derived from its call
// (ID), its first record is fenced at the beginning of its log, and its first decision looks
// at what the parent wants by then (StateOf).
//
// All functions are pure. The comment of each that changes a snapshot reports it.
package tree

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Bounds of a tree.
const (
	// MaxChildren bounds the calls of sub-agents in a run.
	MaxChildren = 64
	// MaxAtWork bounds the children of a run that work at the same time; others start when
	// these end.
	MaxAtWork = 8
	// MaxDepth is the number of levels below a root.
	MaxDepth = 4
	// MaxAgents bounds the sub-agents of an agent.
	MaxAgents = 16
)

// Bounds of what a parent keeps of a report, in bytes.
const maxReason = 160

// idBits encodes the hash of a child's id: 24 letters and digits.
var idBits = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ID returns the id of the run that a call starts: a- and 24 characters, derived from the
// parent, one incarnation of it, and the call.
func ID(parent runlog.Run, firstSequence uint64, callID string) string {
	h := sha256.New()
	h.Write([]byte(parent.Namespace + "\x00" + parent.ID + "\x00"))
	_ = binary.Write(h, binary.BigEndian, firstSequence) // a hash takes all bytes
	h.Write([]byte(callID))
	return "a-" + idBits.EncodeToString(h.Sum(nil)[:15])
}

// Find returns the child that works for a call; nil if there is none.
func Find(s *harnessv1.Snapshot, callID string) *harnessv1.Child {
	for _, c := range s.GetChildren() {
		if c.GetCallId() == callID {
			return c
		}
	}
	return nil
}

// Await has a pending call of a sub-agent wait for its child from now on, which Schedule
// starts. It changes s and call.
func Await(s *harnessv1.Snapshot, run runlog.Run, call *harnessv1.PendingCall, agents []*harnessv1.SubAgent, now time.Time) {
	def := Lookup(agents, call.GetTool())
	call.Class, call.Kind, call.Deadline = harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, runstate.KindAgent, nil
	if def.GetDeadline() != nil {
		call.Deadline = timestamppb.New(now.Add(def.GetDeadline().AsDuration()))
	}
	s.Children = append(s.Children, &harnessv1.Child{
		RunId: ID(run, s.GetFirstSequence(), call.GetCallId()), CallId: call.GetCallId(), Agent: def.GetName(), Writes: !def.GetReadOnly(),
	})
}

// Ended reports whether a child has ended, by its newest report.
func Ended(c *harnessv1.Child) bool { return ended(c.GetReport().GetStatus()) }

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
	case c.GetOrder() == 0 || Ended(c):
		return true
	case c.GetWant() == harnessv1.ChildWant_CHILD_WANT_END:
		return false
	}
	return r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED && r.GetOrder() == c.GetOrder() && !passes(r.GetReason().GetKind())
}

// passes reports whether a run that is parked for this reason continues by itself.
func passes(kind string) bool {
	return kind == runstate.KindWait || kind == "provider_unavailable" || kind == runstate.KindAgent
}

// Awaited returns the children whose calls wait.
func Awaited(s *harnessv1.Snapshot) []*harnessv1.Child {
	var awaited []*harnessv1.Child
	for _, call := range runstate.AwaitedCalls(s) {
		if call.GetKind() == runstate.KindAgent {
			if c := Find(s, call.GetCallId()); c != nil {
				awaited = append(awaited, c)
			}
		}
	}
	return awaited
}

// Schedule starts the children of awaited calls that may work now, in the order of their
// calls: at most MaxAtWork, and one at a time of those that write. It returns those that it
// started, and those for which nothing is left of the budgets. agents are the run's
// sub-agents. It changes s.
func Schedule(s *harnessv1.Snapshot, agents []*harnessv1.SubAgent) (started, broke []*harnessv1.Child) {
	if s.GetStopping() != nil {
		return nil, nil
	}
	working, writing := 0, false
	for _, c := range s.GetChildren() {
		if c.GetOrder() > 0 && !Ended(c) {
			working++
			writing = writing || c.GetWrites()
		}
	}
	for _, c := range Awaited(s) {
		if c.GetOrder() > 0 || working >= MaxAtWork || c.GetWrites() && writing {
			continue
		}
		lease, ok := Lease(s, Lookup(agents, c.GetAgent()))
		if !ok {
			broke = append(broke, c)
			continue
		}
		c.Lease = lease
		order(c, harnessv1.ChildWant_CHILD_WANT_WORK)
		working++
		writing = writing || c.GetWrites()
		started = append(started, c)
	}
	return started, broke
}

// order gives a child the next order. It changes c.
func order(c *harnessv1.Child, want harnessv1.ChildWant) {
	c.Want = want
	c.Order++
}

// Stop orders all children to halt or to end. It reports whether nothing below works any more. It changes s.
func Stop(s *harnessv1.Snapshot, want harnessv1.ChildWant) (stopped bool) {
	stopped = true
	for _, c := range s.GetChildren() {
		if c.GetOrder() == 0 || Ended(c) {
			continue
		}
		if c.GetWant() != want && c.GetWant() != harnessv1.ChildWant_CHILD_WANT_END {
			order(c, want)
		}
		stopped = stopped && Idle(c)
	}
	return stopped
}

// Continue orders the children of awaited calls to work again that the run has halted, and
// with all those too that are idle for another reason. It changes s.
func Continue(s *harnessv1.Snapshot, all bool) {
	for _, c := range Awaited(s) {
		if !Ended(c) && c.GetOrder() > 0 && (c.GetWant() == harnessv1.ChildWant_CHILD_WANT_HALT || all && Idle(c)) {
			order(c, harnessv1.ChildWant_CHILD_WANT_WORK)
		}
	}
}

// End orders a child to end. It changes c.
func End(c *harnessv1.Child) {
	if c.GetOrder() > 0 && !Ended(c) && c.GetWant() != harnessv1.ChildWant_CHILD_WANT_END {
		order(c, harnessv1.ChildWant_CHILD_WANT_END)
	}
}

// Extend gives a child more to use up, and orders it to continue. It changes c.
func Extend(c *harnessv1.Child, lease *harnessv1.Budgets) {
	c.Lease = lease
	order(c, harnessv1.ChildWant_CHILD_WANT_WORK)
}

// Due returns the children to whom the orders of a snapshot are to be sent: those that no
// report has confirmed.
func Due(s *harnessv1.Snapshot) []*harnessv1.Child {
	var due []*harnessv1.Child
	for _, c := range s.GetChildren() {
		if c.GetOrder() > c.GetReport().GetOrder() && !Ended(c) {
			due = append(due, c)
		}
	}
	return due
}

// OrderItem returns the inbox item that gives a child its newest order; nil if that is the
// start.
func OrderItem(parent runlog.Run, c *harnessv1.Child) *harnessv1.InboxItem {
	if c.GetOrder() < 2 {
		return nil
	}
	item := &harnessv1.InboxItem{Id: "order-" + parent.ID + "-" + decimal(uint64(c.GetOrder())), Order: c.GetOrder()}
	switch c.GetWant() {
	case harnessv1.ChildWant_CHILD_WANT_HALT:
		item.Input = &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{Reason: "The run that started it was interrupted."}}
	case harnessv1.ChildWant_CHILD_WANT_END:
		reason := "The run that started it wants it no more."
		if c.GetOverdue() {
			reason = "The deadline of its call has passed."
		}
		item.Input = &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{Reason: reason}}
	default:
		item.Input = &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: c.GetLease()}}
	}
	return item
}

// ReportOf returns what a step to park or end of a child tells its parent, and where its
// answer is: in the child's log. ok is false if the step is none of a child.
func ReportOf(run runlog.Run, version uint64, step *harnessv1.Step) (report *harnessv1.ChildReport, answer *harnessv1.Content, ok bool) {
	s := step.GetSnapshot()
	if s.GetParent() == nil || !runlog.IsRest(step.GetTo()) {
		return nil, nil, false
	}
	report = &harnessv1.ChildReport{
		RunId: run.ID, CallId: s.GetParent().GetCallId(), Version: version, Order: s.GetParent().GetOrder(),
		Status: s.GetStatus(), Reason: briefly(s.GetStopReason()), Accepted: s.GetAccepted(), Turns: s.GetTurnCount(), Usage: proto.CloneOf(s.GetSpent().GetUsage()),
	}
	if ended(s.GetStatus()) {
		answer = s.GetAnswer()
		if size(answer) == 0 || s.GetTurn().GetCalledWorkComplete() && size(s.GetSummary()) > size(answer) {
			answer = s.GetSummary()
		}
	}
	return report, answer, true
}

// briefly returns a reason as a parent keeps it.
func briefly(r *harnessv1.StopReason) *harnessv1.StopReason {
	if r == nil {
		return nil
	}
	return &harnessv1.StopReason{Kind: r.GetKind(), Message: content.Clip(r.GetMessage(), maxReason)}
}

// ReportItem returns the inbox item that tells a parent of a report.
func ReportItem(r *harnessv1.ChildReport) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: "report-" + r.GetRunId() + "-" + decimal(r.GetVersion()), Input: &harnessv1.InboxItem_ChildReport{ChildReport: r}}
}

// Take takes a report in, and counts what the child has used since its last one. It returns
// the child; nil if the report is not of a child of the run, or not newer than the one
// before. It changes s.
func Take(s *harnessv1.Snapshot, r *harnessv1.ChildReport) *harnessv1.Child {
	c := Find(s, r.GetCallId())
	if c.GetRunId() != r.GetRunId() || r.GetVersion() <= c.GetReport().GetVersion() {
		return nil
	}
	runstate.AddTokens(s, usedSince(c.GetReport().GetUsage(), r.GetUsage()))
	c.Report = proto.CloneOf(r)
	c.Report.Answer = nil
	return c
}

// usedSince returns what was used between two sums.
func usedSince(before, after *harnessv1.Usage) *harnessv1.Usage {
	less := func(a, b uint64) uint64 { return a - min(a, b) }
	return &harnessv1.Usage{
		InputTokens:       less(after.GetInputTokens(), before.GetInputTokens()),
		OutputTokens:      less(after.GetOutputTokens(), before.GetOutputTokens()),
		CachedInputTokens: less(after.GetCachedInputTokens(), before.GetCachedInputTokens()),
		CostMicroUsd:      less(after.GetCostMicroUsd(), before.GetCostMicroUsd()),
		ReasoningTokens:   less(after.GetReasoningTokens(), before.GetReasoningTokens()),
		CacheWriteTokens:  less(after.GetCacheWriteTokens(), before.GetCacheWriteTokens()),
	}
}

// StateOf returns what a child sees of its parent. parent is the parent's newest step; nil
// if there is none.
func StateOf(p *harnessv1.Parent, parent *harnessv1.Step) *harnessv1.ParentState {
	s := parent.GetSnapshot()
	if s == nil || runstate.Expired(s) || s.GetFirstSequence() != p.GetFirstSequence() {
		return &harnessv1.ParentState{Gone: s == nil || runstate.Expired(s)}
	}
	c := Find(s, p.GetCallId())
	waits := false
	for _, awaited := range Awaited(s) {
		waits = waits || awaited == c
	}
	return &harnessv1.ParentState{Waits: waits && !runstate.Ended(s), Want: c.GetWant(), Order: c.GetOrder()}
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// size returns the bytes of a text.
func size(c *harnessv1.Content) uint64 {
	if ref := c.GetBlob(); ref != nil {
		return ref.GetSize()
	}
	return uint64(len(c.GetInline()))
}
