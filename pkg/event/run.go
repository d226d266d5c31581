package event

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// SessionStart opens a segment that works on goal with model. caller has sent the goal.
func SessionStart(goal, model string, workflow []string, segment uint32, caller string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{
		Goal: goal, Model: model, Workflow: workflow, Segment: segment, Caller: caller,
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

// RunInterrupted reports that everything that ran for the run has been killed, because
// caller interrupted it.
func RunInterrupted(reason, caller string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_RunInterrupted{RunInterrupted: &harnessv1.RunInterrupted{Reason: reason, Caller: caller}}}
}

// RunCancelled reports that the run was ended by request of caller.
func RunCancelled(reason, caller string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_RunCancelled{RunCancelled: &harnessv1.RunCancelled{Reason: reason, Caller: caller}}}
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

// ModelChanged reports that a client has chosen another model.
func ModelChanged(from, to string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ModelChanged{ModelChanged: &harnessv1.ModelChanged{From: from, To: to}}}
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

// InputAccepted reports that an inbox item of caller took effect. kind is as in the
// comment of harness.v1.InputAccepted.
func InputAccepted(itemID, kind, caller string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_InputAccepted{InputAccepted: &harnessv1.InputAccepted{
		ItemId: itemID, Kind: kind, Caller: caller,
	}}}
}

// InputRejected reports that an inbox item of caller had no effect, and why.
func InputRejected(itemID, kind, reason, caller string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{
		ItemId: itemID, Kind: kind, Reason: reason, Caller: caller,
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
