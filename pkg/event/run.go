package event

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// SessionStart opens a segment that works on goal with model.
func SessionStart(goal, model string, workflow []string, segment uint32) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{
		Goal: goal, Model: model, Workflow: workflow, Segment: segment,
	}}}
}

// SessionPause reports that the run parks, and why.
func SessionPause(reason *harnessv1.StopReason) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SessionPause{SessionPause: &harnessv1.SessionPause{Reason: reason}}}
}

// SessionResume reports that a paused run continues. cause names the input that
// resumed it.
func SessionResume(cause string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SessionResume{SessionResume: &harnessv1.SessionResume{Cause: cause}}}
}

// SessionComplete closes a segment.
func SessionComplete(status harnessv1.RunStatus, accepted bool, reason *harnessv1.StopReason) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SessionComplete{SessionComplete: &harnessv1.SessionComplete{
		Status: status, Accepted: accepted, Reason: reason,
	}}}
}

// RunInterrupted reports that everything that ran for the run has been killed.
func RunInterrupted(reason string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_RunInterrupted{RunInterrupted: &harnessv1.RunInterrupted{Reason: reason}}}
}

// RunCancelled reports that the run was ended by request.
func RunCancelled(reason string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_RunCancelled{RunCancelled: &harnessv1.RunCancelled{Reason: reason}}}
}

// BudgetWarn reports that a budget is used up.
func BudgetWarn(warn *harnessv1.BudgetWarn) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_BudgetWarn{BudgetWarn: warn}}
}

// PlanDraft shows a plan before it is committed.
func PlanDraft(plan string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_PlanDraft{PlanDraft: &harnessv1.PlanDraft{Plan: plan}}}
}

// PlanCommit shows the plan that the run follows.
func PlanCommit(plan string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_PlanCommit{PlanCommit: &harnessv1.PlanCommit{Plan: plan}}}
}

// ModeChanged reports that the mode of work changed.
func ModeChanged(from, to string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ModeChanged{ModeChanged: &harnessv1.ModeChanged{From: from, To: to}}}
}

// ContextUsage reports how full the model's window is.
func ContextUsage(usage *harnessv1.ContextUsage) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ContextUsage{ContextUsage: usage}}
}

// ContextPressure reports that the model's window fills up. level is soft or
// blocking; the sizes are in tokens.
func ContextPressure(level string, used, maxInput uint32) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ContextPressure{ContextPressure: &harnessv1.ContextPressure{
		Level: level, UsedTokens: used, MaxInputTokens: maxInput,
	}}}
}

// CompactionStarted reports that a pass of compaction begins, or that a summary was
// requested for one.
func CompactionStarted(started *harnessv1.CompactionStarted) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_CompactionStarted{CompactionStarted: started}}
}

// CompactionCompleted reports that a pass of compaction has ended.
func CompactionCompleted(completed *harnessv1.CompactionCompleted) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_CompactionCompleted{CompactionCompleted: completed}}
}

// InputAccepted reports that an inbox item took effect. kind is as in the
// comment of harness.v1.InputAccepted.
func InputAccepted(itemID, kind string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_InputAccepted{InputAccepted: &harnessv1.InputAccepted{
		ItemId: itemID, Kind: kind,
	}}}
}

// InputRejected reports that an inbox item had no effect, and why.
func InputRejected(itemID, kind, reason string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{
		ItemId: itemID, Kind: kind, Reason: reason,
	}}}
}

// ExecutorMissing reports that a step waits for an executor that no worker serves.
func ExecutorMissing(executor string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ExecutorMissing{ExecutorMissing: &harnessv1.ExecutorMissing{Executor: executor}}}
}

// ExecutorError reports that an executor could not process a step. count is the
// number of failures at this step so far.
func ExecutorError(executor, message string, count uint32) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{
		Executor: executor, Error: message, Count: count,
	}}}
}
