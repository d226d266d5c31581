package event

import (
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// StepStart reports that a turn begins, or continues after an answer from
// outside. attempt counts the claims of the turn, from 1.
func StepStart(attempt uint32, resumed bool) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{
		Attempt: attempt, Resumed: resumed,
	}}}
}

// StepEnd reports that a turn ended. message is the error of the outcome error,
// or why the turn was skipped.
func StepEnd(outcome, message string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_StepEnd{StepEnd: &harnessv1.StepEnd{
		Outcome: outcome, Error: message,
	}}}
}

// WorkerTakeover reports that another worker continues a turn. former is the
// process that had it.
func WorkerTakeover(attempt uint32, former string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_WorkerTakeover{WorkerTakeover: &harnessv1.WorkerTakeover{
		Attempt: attempt, Former: former,
	}}}
}

// ModelResponse reports that the model answered with calls tool calls.
func ModelResponse(model string, usage *harnessv1.Usage, finishReason string, calls int, latency *durationpb.Duration) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{
		Model: model, Usage: usage, FinishReason: finishReason, Latency: latency,
		ToolCalls: uint32(calls), //nolint:gosec // bounded by a response
	}}}
}

// ModelRetry reports that a request to a model failed. Another follows after its wait.
func ModelRetry(r *harnessv1.ModelRetried) *harnessv1.Event {
	retry := &harnessv1.ModelRetry{Try: r.GetTry(), Model: r.GetModel(), Error: r.GetError(), Wait: r.GetWait(), GivenUp: r.GetLast()}
	if kind := r.GetAdjustment().GetAdjustment(); kind != harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED {
		retry.Adjustment = strings.ToLower(strings.TrimPrefix(kind.String(), "ADJUSTMENT_"))
	}
	return &harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: retry}}
}

// ContinuationPrompt reports that a silent agent was reminded for the count-th
// time in a row, of at most limit.
func ContinuationPrompt(count, limit uint32) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ContinuationPrompt{ContinuationPrompt: &harnessv1.ContinuationPrompt{
		Count: count, Max: limit,
	}}}
}

// StopRejected reports that the agent wanted to stop and may not. message is
// the text for the model; gap is nil except for an unsatisfied contract.
func StopRejected(kind, message string, count uint32, gap *harnessv1.GapReport) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_StopRejected{StopRejected: &harnessv1.StopRejected{
		Kind: kind, Message: message, Count: count, Gap: gap,
	}}}
}

// ContractEvaluated reports how far the contract is met.
func ContractEvaluated(satisfied bool, coverage *harnessv1.Coverage, requirements []*harnessv1.RequirementCoverage) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ContractEvaluated{ContractEvaluated: &harnessv1.ContractEvaluated{
		Satisfied: satisfied, Coverage: coverage, Requirements: requirements,
	}}}
}

// StallDetected reports turns with calls and without progress.
func StallDetected(turns uint32) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_StallDetected{StallDetected: &harnessv1.StallDetected{Turns: turns}}}
}

// DoomLoopDetected reports that calls repeat.
func DoomLoopDetected(found *harnessv1.DoomLoopDetected) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_DoomLoopDetected{DoomLoopDetected: found}}
}
