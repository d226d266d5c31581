package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// failure returns the outcome of a step that cannot be executed. It is a failed turn
// for the stop decision, which alone ends runs. If the stop decision itself fails, the
// outcome ends the run.
func (t *Task) failure(kind harnessv1.TurnErrorKind, message string) *harnessv1.Outcome {
	s := t.Snapshot()
	now := t.cfg.Now()
	step := &harnessv1.Step{From: t.executor, Snapshot: s}
	outcome := &harnessv1.Outcome{Step: step}
	switch {
	case runstate.Ended(s):
		// An ended run that cannot accept its inputs stays ended. The cursor moves past
		// them, so that they do not wake the run forever.
		runstate.PassInbox(s, t.Step().GetRepairTrigger().GetInboxSequence())
		step.To = runlog.End
		step.Message = &harnessv1.Step_Result{Result: runstate.Result(s, now)}
	case t.executor == workflow.StopDecision:
		if err := runstate.ChangePhase(step, s, harnessv1.PhaseInput_PHASE_INPUT_FAIL); err != nil {
			s.Phase = t.Step().GetSnapshot().GetPhase()
		}
		runstate.StopClock(s, now)
		s.Status, s.PendingToolCalls = harnessv1.RunStatus_RUN_STATUS_FAILED, nil
		s.StopReason = &harnessv1.StopReason{
			Kind: runstate.ErrorKind(kind), Message: message,
			Details: &harnessv1.StopDetails{Turn: s.GetTurnCount()},
		}
		outcome.Events = append(outcome.Events, runstate.Event(s, s.GetTurnCount(), &harnessv1.Event{
			Event: &harnessv1.Event_SessionComplete{SessionComplete: &harnessv1.SessionComplete{Status: s.GetStatus(), Reason: s.GetStopReason()}},
		}))
		step.To = runlog.End
		step.Message = &harnessv1.Step_Result{Result: runstate.Result(s, now)}
	default:
		step.To = workflow.StopDecision
		step.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{
			TurnNumber: s.GetTurnCount(),
			Error:      &harnessv1.TurnError{Kind: kind, Message: message},
		}}
	}
	return outcome
}

// failUnreadable fails a run whose step, or whose journal after the step, cannot be
// decoded. It fails the run from its newest readable step, so that a broken record is
// visible. why is the error, newest the newest record.
func (l *loop) failUnreadable(ctx context.Context, d runlog.Delivery, newest runlog.Entry, why error, logger *slog.Logger) telemetry.Outcome {
	logger.ErrorContext(ctx, "record cannot be decoded", "error", why)
	last, err := l.newestReadable(ctx, newest)
	if err != nil {
		logger.WarnContext(ctx, "step put back", "error", err)
		_ = d.Nak(unavailableDelay)
		return telemetry.PutBack
	}
	task := &Task{Run: newest.Run, Entry: last, cfg: l.cfg, executor: l.x.Name(), tail: newest, appending: make(chan struct{}, 1)}
	err = l.commit(ctx, task, task.failure(harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON,
		fmt.Sprintf("a record up to version %d cannot be decoded: %v", newest.Header.Version, why)))
	if err == nil {
		l.cfg.Metrics.DeadLetter(ctx, l.x.Name())
	}
	return l.finish(ctx, d, task, err, logger)
}

// newestReadable returns the newest step that can be read. A record that cannot be
// decoded has no link to the one before it, so the sequences below are read in turn. If
// there is no such step, it returns an initial state.
func (l *loop) newestReadable(ctx context.Context, newest runlog.Entry) (runlog.Entry, error) {
	const reach = 10_000
	for sequence := newest.Sequence - 1; sequence > 0 && newest.Sequence-sequence < reach; sequence-- {
		found, err := l.cfg.Log.Read(ctx, newest.Run, sequence)
		switch {
		case err == nil && found.Record.GetStep() != nil:
			return found, nil
		case err != nil && !errors.Is(err, runlog.ErrNotFound):
			return runlog.Entry{}, err
		}
	}
	return runlog.Entry{Run: newest.Run, Record: &harnessv1.Record{Body: &harnessv1.Record_Step{Step: &harnessv1.Step{
		Snapshot: &harnessv1.Snapshot{Phase: harnessv1.Phase_PHASE_IDLE, Status: harnessv1.RunStatus_RUN_STATUS_RUNNING},
	}}}}, nil
}
