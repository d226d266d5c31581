package tree

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// BrokeText is the result of a call for which nothing is left of the run's budgets.
const BrokeText = "The sub-agent was not started: nothing is left of this run's budget of tokens, cost or runs."

const noAnswer = "It gave no answer."

// ResultText returns the result of a call whose child has ended: how it ended and what it
// cost in a line, then its answer. failed is true for anything but accepted work.
func ResultText(c *harnessv1.Child, answer string) (text string, failed bool) {
	r := c.GetReport()
	failed = r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || !r.GetAccepted() || c.GetOverdue()
	status := strings.TrimPrefix(r.GetStatus().String(), "RUN_STATUS_")
	empty := strings.TrimSpace(answer) == ""
	switch {
	case r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE && !r.GetAccepted():
		status = "DONE, not accepted"
	case r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE && empty:
		status = "DONE, without an answer"
	}
	head := fmt.Sprintf("[%s: %s; %d turns, %d tokens", c.GetAgent(), status, r.GetTurns(), runstate.TotalTokens(r.GetUsage()))
	if cost := r.GetUsage().GetCostMicroUsd(); cost > 0 {
		head += fmt.Sprintf(", $%.4f", float64(cost)/1e6)
	}
	head += filesText(r.GetFiles()) + "; run " + c.GetRunId() + "]"
	switch {
	case !c.GetWorktree():
	case r.GetUnchanged():
		head += " It has changed nothing in its worktree: there is nothing to merge."
	default:
		head += " Its changes are in its worktree: " + MergeTool + " with its run brings them here."
	}
	switch why := stopText(c); {
	case why != "":
		head += " " + why
	case failed && r.GetReason().GetMessage() != "":
		head += " " + r.GetReason().GetMessage()
	}
	if empty {
		return head + "\n\n" + noAnswer, failed
	}
	return head + "\n\n" + answer, failed
}

// stopText returns why a child was ended before it was done; empty if it was not.
func stopText(c *harnessv1.Child) string {
	switch {
	case c.GetOverdue():
		return "The deadline of the call passed before it had ended."
	case c.GetExhausted() != "" && c.GetReport().GetStatus() == harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		return exhaustedText(c) + " What follows is what it had by then."
	}
	return ""
}

// exhaustedText is why a child was ended that has used up a budget of its definition.
func exhaustedText(c *harnessv1.Child) string {
	name := strings.ReplaceAll(c.GetExhausted(), "_", " ")
	return fmt.Sprintf("It was ended (budget_exceeded:%s): it has used up the %s that its definition allows.", c.GetExhausted(), name)
}

// WaitReason returns why a run that waits for sub-agents alone is parked: a reason that
// passes, or that of the first child that waits for an answer or a resume when nothing below works.
// turn is the turn of the calls.
func WaitReason(s *harnessv1.Snapshot, turn uint32) *harnessv1.StopReason {
	reason := &harnessv1.StopReason{Kind: runstate.KindAgent, Details: &harnessv1.StopDetails{Turn: turn}}
	if s.GetStopping() != nil {
		reason.Message, reason.Details.Stopping = "It stops: runs below it are being stopped.", true
		return reason
	}
	var working, waiting []string
	var first *harnessv1.Child
	short := false
	for _, c := range awaited(s) {
		switch {
		case Ended(c):
		case queued(c) && s.GetShort() != "":
			short = true
		case queued(c): // until one before it ends
			waiting = append(waiting, c.GetAgent())
		case !Idle(c):
			working = append(working, c.GetAgent())
		case first == nil:
			first = c
		}
	}
	if first == nil || len(working) > 0 {
		working = append(working, waiting...)
	}
	switch {
	case len(working) == 0 && short:
		reason.Kind = budgetExceeded + s.GetShort()
		reason.Message = fmt.Sprintf("A call of a sub-agent waits: this run has nothing left of its share of the budget of %s.", s.GetShort())
	case len(working) == 0 && first != nil:
		r := first.GetReport().GetReason()
		reason.Details.RunId, reason.Message = r.GetDetails().GetRunId(), r.GetMessage() // of a run below the child
		if reason.GetDetails().GetRunId() == "" {
			reason.Details.RunId = first.GetRunId()
			reason.Message = fmt.Sprintf("Sub-agent %s (run %s) waits: %s", first.GetAgent(), first.GetRunId(), r.GetMessage())
		}
		if strings.HasPrefix(r.GetKind(), "budget_exceeded:") {
			reason.Kind = r.GetKind()
		}
	case len(working) == 1:
		reason.Message = fmt.Sprintf("Sub-agent %s works.", working[0])
	default:
		reason.Message = fmt.Sprintf("%d sub-agents work: %s.", len(working), strings.Join(working, ", "))
	}
	return reason
}

// maxNamed bounds the files that a result names.
const maxNamed = 10

// filesText returns which files a child has changed; empty for none.
func filesText(f *harnessv1.ChangedFiles) string {
	n := len(f.GetPaths())
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("; %d files changed: ", n)
	switch {
	case f.GetMore():
		text = fmt.Sprintf("; more than %d files changed: ", n)
	case n == 1:
		text = "; 1 file changed: "
	}
	text += strings.Join(f.GetPaths()[:min(n, maxNamed)], ", ")
	if n > maxNamed || f.GetMore() {
		text += " and others"
	}
	return text
}
