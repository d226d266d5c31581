package render

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// controlLine returns the line for an event about the course of the run, empty for
// those that are not printed.
func (t *Text) controlLine(e *harnessv1.Event) string {
	s := t.style
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_BudgetWarn:
		b := v.BudgetWarn
		return s.warn(fmt.Sprintf("budget used up: %s, %s of %s", clean(b.GetBudget()), number(b.GetUsed()), number(b.GetLimit())))
	case *harnessv1.Event_ContinuationPrompt:
		c := v.ContinuationPrompt
		return s.warn(fmt.Sprintf("no tool call: nudged (%d of %d)", c.GetCount(), c.GetMax()))
	case *harnessv1.Event_ContextPressure:
		p := v.ContextPressure
		return s.warn(fmt.Sprintf("context fills up (%s): %s of %s tokens", clean(p.GetLevel()), count(uint64(p.GetUsedTokens())), count(uint64(p.GetMaxInputTokens()))))
	case *harnessv1.Event_ApprovalRequested:
		a := v.ApprovalRequested
		what := " waits for approval"
		if t.reviews[a.GetCallId()] {
			what = " waits for a review"
		}
		asked := call(a.GetTool(), a.GetArguments())
		if path := pathOf(a.GetTool(), a.GetArguments()); path != "" {
			asked = clean(a.GetTool()) + " " + path // the prompt shows the texts
		}
		line := "  " + s.warn("? "+asked+what)
		if a.GetWhy() != "" {
			line += ": " + shorten(a.GetWhy(), 200)
		}
		return line
	case *harnessv1.Event_ToolQuestion:
		q := v.ToolQuestion
		text, _ := serverQuestion(q.GetQuestion())
		return s.warn("  ? " + clean(q.GetTool()) + ": the server " + clean(q.GetQuestion().GetServer()) + " asks: " + shorten(text, 300))
	case *harnessv1.Event_ToolAnswer:
		words := map[harnessv1.AnswerAction]string{
			harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT:  "answered",
			harnessv1.AnswerAction_ANSWER_ACTION_DECLINE: "declined",
			harnessv1.AnswerAction_ANSWER_ACTION_CANCEL:  "closed without a choice",
		}
		return s.dim("  the question of " + clean(v.ToolAnswer.GetTool()) + " was " + words[v.ToolAnswer.GetAction()] + by(v.ToolAnswer.GetCaller()))
	case *harnessv1.Event_ApprovalAnswered:
		a := v.ApprovalAnswered
		words := map[harnessv1.ApprovalDecision]string{
			harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE: "allowed once",
			harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN:  "allowed for this run",
			harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY: "denied",
		}
		line := "  " + clean(a.GetTool()) + " " + words[a.GetDecision()] + by(a.GetCaller())
		switch {
		case len(a.GetRules()) > 0:
			line += ": " + shorten(Granted(a.GetTool(), a.GetRules()), 300)
		case a.GetArguments() != nil:
			line += ", changed: " + call(a.GetTool(), a.GetArguments())
		}
		if a.GetReason() != "" {
			line += ": " + shorten(a.GetReason(), 200)
		}
		return s.dim(line)
	case *harnessv1.Event_InputAccepted:
		switch v.InputAccepted.GetKind() {
		case "user_message":
			return s.dim("message received")
		case "replan":
			return s.dim("another plan was requested")
		}
	case *harnessv1.Event_InputRejected:
		if v.InputRejected.GetKind() == "resume" && t.turn > 0 {
			return "" // it arrived after the run had resumed
		}
		return s.warn(clean(strings.ReplaceAll(v.InputRejected.GetKind(), "_", " ")) + " refused: " + shorten(v.InputRejected.GetReason(), 200))
	case *harnessv1.Event_RunInterrupted:
		return s.warn(because("interrupted"+by(v.RunInterrupted.GetCaller()), v.RunInterrupted.GetReason()))
	case *harnessv1.Event_RunCancelled:
		return s.warn(because("cancelled"+by(v.RunCancelled.GetCaller()), v.RunCancelled.GetReason()))
	case *harnessv1.Event_WorkerTakeover:
		return s.warn(fmt.Sprintf("another worker continues (attempt %d)", v.WorkerTakeover.GetAttempt()))
	case *harnessv1.Event_ExecutorMissing:
		return s.bad("no worker serves executor " + clean(v.ExecutorMissing.GetExecutor()) + ": the run waits for one")
	case *harnessv1.Event_ExecutorError:
		x := v.ExecutorError
		return s.bad(fmt.Sprintf("executor %s failed (%d): %s", clean(x.GetExecutor()), x.GetCount(), shorten(x.GetError(), 300)))
	}
	return ""
}

func because(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + shorten(reason, 200)
}

// local is the caller that is not named: the user of this machine.
const local = "local"

// by returns a caller for the end of a phrase; empty for an unknown or the local one.
func by(caller string) string {
	if caller == "" || caller == local {
		return ""
	}
	return " by " + clean(caller)
}
