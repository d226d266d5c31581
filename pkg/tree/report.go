package tree

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// ReportOf returns what a step to park or end of a child tells its parent, and where its
// answer is: in the child's log. ok is false if the step is none of a child, or if the child
// still stops: another report follows once everything below it has stopped.
func ReportOf(run runlog.Run, version uint64, step *harnessv1.Step) (report *harnessv1.ChildReport, answer *harnessv1.Content, ok bool) {
	s := step.GetSnapshot()
	if s.GetParent() == nil || !runlog.IsRest(step.GetTo()) || s.GetStopping() != nil && step.GetTo() == runlog.Park {
		return nil, nil, false
	}
	report = &harnessv1.ChildReport{
		RunId: run.ID, CallId: s.GetParent().GetCallId(), Version: version, Order: s.GetParent().GetOrder(),
		Status: s.GetStatus(), Reason: briefly(s.GetStopReason()), Accepted: s.GetAccepted(), Turns: s.GetTurnCount(), Usage: proto.CloneOf(s.GetSpent().GetUsage()),
		Runs: s.GetSpent().GetRuns(), Files: proto.CloneOf(s.GetChangedFiles()),
	}
	if !ended(s.GetStatus()) {
		report.Short, report.NeedsInput = s.GetShort(), NeedsInput(step)
	}
	if ended(s.GetStatus()) {
		answer = AnswerOf(s)
		report.Artifacts = uint32(len(step.GetResult().GetDeliverables())) //nolint:gosec // few
	}
	return report, answer, true
}

// AnswerOf returns what a run gives the one that started it: its last text, or its summary if it has written none.
func AnswerOf(s runstate.SharedFields) *harnessv1.Content {
	if a := s.GetAnswer(); a.GetBlob() != nil || strings.TrimSpace(a.GetInline()) != "" {
		return a
	}
	return s.GetSummary()
}

// Words returns the number of words of a text; of one that is stored as a blob about, by its size.
func Words(c *harnessv1.Content) int {
	if ref := c.GetBlob(); ref != nil {
		return int(min(ref.GetSize()/bytesAWord, 1<<30))
	}
	return len(strings.Fields(c.GetInline()))
}

// bytesAWord is about the size of a word with the space after it.
const bytesAWord = 6

// briefly returns a reason as a parent keeps it.
func briefly(r *harnessv1.StopReason) *harnessv1.StopReason {
	if r == nil {
		return nil
	}
	brief := &harnessv1.StopReason{Kind: r.GetKind(), Message: content.Clip(r.GetMessage(), maxReason)}
	if id := r.GetDetails().GetRunId(); id != "" { // below it
		brief.Details = &harnessv1.StopDetails{RunId: id}
	}
	return brief
}

// Knows reports whether the snapshot of a parent has a report, or a later one of the same child.
func Knows(s runstate.TreeFields, r *harnessv1.ChildReport) bool {
	c := FindRun(s, r.GetRunId())
	return c != nil && !queued(c) && c.GetReport().GetVersion() >= r.GetVersion()
}

// Expects reports whether a parent with a snapshot waits for a report of a child: it has an order that the child has not confirmed, or
// the child works. Otherwise it need not know that the child was deleted: an order to continue it returns that.
func Expects(s runstate.TreeFields, r *harnessv1.ChildReport) bool {
	c := FindRun(s, r.GetRunId())
	return c != nil && !Idle(c)
}

// ReportItem returns the inbox item that tells a parent of a report.
func ReportItem(r *harnessv1.ChildReport) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: "report-" + r.GetRunId() + "-" + decimal(r.GetVersion()), Input: &harnessv1.InboxItem_ChildReport{ChildReport: r}}
}

// Take takes a report in, and adds the child's usage since its last one. It returns
// the child; nil if the report is not of a child of the run, or not newer than the one
// before. The answer is kept only for a child in the background. The end of a child counts until
// the parent continues it: if a client has it work again, only what it uses counts. It changes s.
func Take(s *harnessv1.Snapshot, r *harnessv1.ChildReport) *harnessv1.Child {
	c := FindRun(s, r.GetRunId())
	taken := newest(c.GetReport(), r)
	if c == nil || taken == nil {
		return nil
	}
	before := c.GetReport()
	runstate.AddTokens(s, usedSince(before.GetUsage(), taken.GetUsage()))
	runstate.AddRuns(s, taken.GetRuns()-min(taken.GetRuns(), before.GetRuns()))
	if s.GetParent() != nil {
		runstate.AddFiles(s, taken.GetFiles().GetPaths(), taken.GetFiles().GetMore())
	}
	c.Report = taken
	if ended(before.GetStatus()) {
		taken.Status, taken.Reason, taken.Accepted, taken.Answer = before.GetStatus(), before.GetReason(), before.GetAccepted(), before.GetAnswer()
		return c
	}
	if ended(taken.GetStatus()) && taken.GetOrder() < c.GetContinueOrder() {
		taken.Status = harnessv1.RunStatus_RUN_STATUS_PARKED // an end from before it was continued
	}
	if !c.GetBackground() || !Ended(c) {
		taken.Answer = nil
	}
	if Ended(c) {
		c.Deadline = nil
	}
	return c
}

// StartsWaiting reports whether a child whose newest report replaced before waits from now on for an answer or a resume, and the run
// has not ordered it to halt or to end.
func StartsWaiting(c *harnessv1.Child, before *harnessv1.ChildReport) bool {
	r := c.GetReport()
	if c.GetWant() != harnessv1.ChildWant_CHILD_WANT_WORK || Ended(c) || !Idle(c) {
		return false
	}
	return before.GetStatus() != r.GetStatus() || before.GetOrder() != r.GetOrder() || !proto.Equal(before.GetReason(), r.GetReason())
}

// usedSince returns the usage between two sums.
func usedSince(before, after *harnessv1.Usage) *harnessv1.Usage {
	less := func(a, b uint64) uint64 { return a - min(a, b) }
	return &harnessv1.Usage{
		InputTokens:       less(after.GetInputTokens(), before.GetInputTokens()),
		OutputTokens:      less(after.GetOutputTokens(), before.GetOutputTokens()),
		CachedInputTokens: less(after.GetCachedInputTokens(), before.GetCachedInputTokens()),
		CostMicroUsd:      less(after.GetCostMicroUsd(), before.GetCostMicroUsd()),
		ReasoningTokens:   less(after.GetReasoningTokens(), before.GetReasoningTokens()),
		CacheWriteTokens:  less(after.GetCacheWriteTokens(), before.GetCacheWriteTokens()),
		Estimated:         after.GetEstimated(),
	}
}
