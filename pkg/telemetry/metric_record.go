package telemetry

import (
	"context"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// chat is the operation of the GenAI conventions for a turn.
const chat = "chat"

// micros is the number of price units in a US dollar.
const micros = 1e6

// stored counts what a record that this process has stored reports.
func (m *Metrics) stored(ctx context.Context, rec *harnessv1.Record) {
	for _, e := range rec.GetEvents() {
		if e.GetWorkerTakeover() != nil {
			m.takeovers.add(ctx, 1, rec.GetWriter().GetExecutor())
		}
	}
	if step := rec.GetStep(); step != nil {
		m.compaction.stored(ctx, rec)
		m.quality.stored(ctx, rec)
		m.handedOff(ctx, rec, step)
		return
	}
	journal := rec.GetJournal()
	switch {
	case journal.GetModelRetried() != nil:
		m.retried(ctx, journal.GetModelRetried())
	case journal.GetModelResponded() != nil:
		r := journal.GetModelResponded()
		m.answered(ctx, r.GetModel(), r.GetUsage())
		if !r.GetUnjudged() {
			m.called(ctx, r.GetCalls())
		}
	case journal.GetCallsJudged() != nil:
		m.called(ctx, journal.GetCallsJudged().GetCalls())
	case journal.GetToolFinished() != nil:
		m.toolEnded(ctx, journal.GetToolFinished(), rec.GetAppended())
	case journal.GetExecutorFailed() != nil:
		m.failures.add(ctx, 1, journal.GetExecutorFailed().GetExecutor())
	}
}

// handedOff counts a step.
func (m *Metrics) handedOff(ctx context.Context, rec *harnessv1.Record, step *harnessv1.Step) {
	snapshot := step.GetSnapshot()
	switch {
	case step.GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_START:
		m.runsStarted.add(ctx, 1)
	case step.GetTurnComplete() != nil && step.GetFrom() == workflow.Turn:
		outcome := "completed"
		if e := step.GetTurnComplete().GetError(); e != nil {
			outcome = runstate.ErrorKind(e.GetKind())
		}
		m.turns.add(ctx, 1, outcome)
	case step.GetParked() != nil && snapshot.GetParkVersion() == rec.GetVersion():
		m.runsParked.add(ctx, 1, step.GetParked().GetReason().GetKind())
	case step.GetResult() != nil && step.GetFrom() == workflow.StopDecision && !runstate.Expired(snapshot):
		r := step.GetResult()
		m.runsEnded.add(ctx, 1, StatusName(r.GetStatus()), r.GetReason().GetKind())
	}
}

type runEnd struct{ status, reason string }

// ends returns the ends of runs; docs/events.md explains them.
func ends() []runEnd {
	done, stalled := StatusName(harnessv1.RunStatus_RUN_STATUS_DONE), StatusName(harnessv1.RunStatus_RUN_STATUS_STALLED)
	cancelled := runstate.ErrorKind(harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED)
	noPlan := runstate.ErrorKind(harnessv1.TurnErrorKind_TURN_ERROR_KIND_NO_PLAN)
	all := []runEnd{
		{done, "agent_done"},
		{done, "max_turns"},
		{done, noPlan},
		{stalled, "doom_loop"},
		{stalled, "stalled"},
		{StatusName(harnessv1.RunStatus_RUN_STATUS_CANCELLED), cancelled},
	}
	failed := StatusName(harnessv1.RunStatus_RUN_STATUS_FAILED)
	for kind := range harnessv1.TurnErrorKind_name {
		switch harnessv1.TurnErrorKind(kind) {
		case harnessv1.TurnErrorKind_TURN_ERROR_KIND_UNSPECIFIED,
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE, // the run waits
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED, harnessv1.TurnErrorKind_TURN_ERROR_KIND_NO_PLAN:
		default:
			all = append(all, runEnd{failed, runstate.ErrorKind(harnessv1.TurnErrorKind(kind))})
		}
	}
	return all
}

// StatusName returns a run's status as a label: running, parked, done and so on.
func StatusName(s harnessv1.RunStatus) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "RUN_STATUS_"))
}

// named splits PROVIDER:NAME.
func named(ref string) (provider, model string) {
	provider, model, _ = strings.Cut(ref, ":")
	return provider, model
}

// retried counts a failed try, with what it used if it is charged.
func (m *Metrics) retried(ctx context.Context, r *harnessv1.ModelRetried) {
	outcome := "retried"
	switch {
	case r.GetAdjustment() != nil:
		outcome = "adjusted"
	case r.GetLast():
		outcome = "given_up"
	}
	provider, model := named(r.GetModel())
	m.modelRetries.add(ctx, 1, provider, model, runstate.ErrorKind(r.GetKind()), outcome)
	if r.GetUsage() != nil {
		m.answered(ctx, r.GetModel(), r.GetUsage())
	}
}

func (m *Metrics) answered(ctx context.Context, ref string, u *harnessv1.Usage) {
	provider, model := named(ref)
	m.modelTokens.record(ctx, float64(u.GetInputTokens()), chat, provider, model, "input")
	m.modelTokens.record(ctx, float64(u.GetOutputTokens()), chat, provider, model, "output")
	m.modelCached.add(ctx, u.GetCachedInputTokens(), provider, model)
	m.modelCacheWrites.add(ctx, u.GetCacheWriteTokens(), provider, model)
	m.modelReasoning.add(ctx, u.GetReasoningTokens(), provider, model)
	m.modelCost.add(ctx, float64(u.GetCostMicroUsd())/micros, provider, model)
}

func (m *Metrics) called(ctx context.Context, calls []*harnessv1.PreparedCall) {
	for _, c := range calls {
		tool := c.GetTool()
		if !c.GetOffered() {
			tool = Other
		}
		m.toolCalls.add(ctx, 1, tool, strings.ToLower(strings.TrimPrefix(c.GetDisposition().String(), "CALL_DISPOSITION_")))
	}
}

// toolEnded counts the end of a call, whose tool is named in the message with its
// result. A call with an unknown end has no such message yet.
func (m *Metrics) toolEnded(ctx context.Context, f *harnessv1.ToolFinished, appended []*harnessv1.Message) {
	tool, failed := Other, ""
	for _, a := range appended {
		if a.GetToolCallId() == f.GetCallId() {
			tool = a.GetToolName()
			if a.GetIsError() {
				failed = "error"
			}
		}
	}
	switch f.GetOutcome() {
	case harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
		failed = "unknown"
		m.toolUnknown.add(ctx, 1)
	case harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED:
		failed = "cancelled"
	case harnessv1.ToolOutcome_TOOL_OUTCOME_REFUSED:
		return // it did not run
	case harnessv1.ToolOutcome_TOOL_OUTCOME_INPUT_REQUIRED:
		return // it has not ended
	default: // done
	}
	m.toolDuration.record(ctx, f.GetDuration().AsDuration().Seconds(), tool, failed)
}

// endsCycle reports whether a step is the last of its cycle of the loop.
func endsCycle(step *harnessv1.Step) bool {
	return step.GetFrom() == workflow.StopDecision && (step.GetRepairTrigger() != nil || runlog.IsRest(step.GetTo()))
}
