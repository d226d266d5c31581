// Package stopdecision decides whether a run goes on, rests or ends. It alone
// ends runs; everyone else who cannot go on hands it a turn with an error.
//
// The layers are checked in order and the first that matches wins:
//
//	0  cancelled, broken off, waiting for an answer, no provider to be reached
//	1  any other error of the turn
//	2  max_turns
//	4a the agent is done: work_complete is required
//	4f the agent is done and nothing objects
//	5  another turn
//
// Layer 3 (loops and stalls) and the gates 4b to 4e stand between them once
// their parts exist; their numbers are kept for them.
package stopdecision

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Name of the executor.
const Name = runstate.StopDecision

// Kinds of rejection.
const (
	rejectedNotCalled = "work_complete_not_called"
	rejectedStrict    = "work_complete_required_strict"
)

// deciding is one decision under way.
type deciding struct {
	in       *harnessv1.StepInput
	turn     *harnessv1.TurnComplete
	s        *harnessv1.Snapshot
	step     *harnessv1.Step
	appended []*harnessv1.Message
	events   []*harnessv1.Event
}

// Decide maps a step with a TurnComplete to its outcome. An error means that
// the input is not one that the stop decision can get.
func Decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	turn := in.GetStep().GetTurnComplete()
	if turn == nil {
		return nil, errors.New("stopdecision: the step holds no TurnComplete")
	}
	if in.GetStep().GetSnapshot() == nil {
		return nil, errors.New("stopdecision: the step holds no snapshot")
	}
	d := &deciding{
		in:   in,
		turn: turn,
		s:    proto.CloneOf(in.GetStep().GetSnapshot()),
		step: &harnessv1.Step{From: Name, Observed: in.GetObserved()},
	}
	runstate.FillIn(d.s, harnessv1.Phase_PHASE_REFLECTING)
	if err := d.decide(); err != nil {
		return nil, err
	}
	d.step.Snapshot = d.s
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{
		Step: d.step, Appended: d.appended, Events: d.events,
	}}}, nil
}

func (d *deciding) decide() error {
	s, t := d.s, d.turn
	switch kind := t.GetError().GetKind(); kind {
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_UNSPECIFIED:
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED:
		d.emit(&harnessv1.Event{Event: &harnessv1.Event_RunCancelled{RunCancelled: &harnessv1.RunCancelled{Reason: t.GetError().GetMessage()}}})
		return d.end(harnessv1.RunStatus_RUN_STATUS_CANCELLED, harnessv1.PhaseInput_PHASE_INPUT_FAIL, "cancelled", t.GetError().GetMessage(), false)
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE:
		return d.parkForOutage()
	default:
		return d.end(harnessv1.RunStatus_RUN_STATUS_FAILED, harnessv1.PhaseInput_PHASE_INPUT_FAIL, runstate.ErrorKind(kind), t.GetError().GetMessage(), false)
	}
	switch {
	case t.GetInterrupted():
		return d.goOn() // repair parks it: only repair takes items in
	case t.GetAwaiting():
		return d.parkForAnswers()
	case s.GetTurnCount() >= s.GetMaxTurns():
		return d.end(harnessv1.RunStatus_RUN_STATUS_DONE, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "max_turns",
			fmt.Sprintf("All %d turns are used up.", s.GetMaxTurns()), false)
	case t.GetAgentDone():
		return d.gates()
	}
	return d.goOn()
}

// gates are what an agent that wants to stop has to pass.
func (d *deciding) gates() error {
	s, stop := d.s, d.s.GetConfig().GetStop()
	if stop.GetRequireWorkComplete() && !d.turn.GetCalledWorkComplete() {
		s.WorkCompleteRetries++
		switch {
		case s.GetWorkCompleteRetries() <= stop.GetWorkCompleteMaxRetries():
			return d.reject(rejectedNotCalled, fmt.Sprintf(
				"You stopped without calling work_complete (reminder %d of %d). If the task is done and checked, call work_complete now with a summary. "+
					"If it is not, make the next tool call.", s.GetWorkCompleteRetries(), stop.GetWorkCompleteMaxRetries()))
		case stop.GetPolicy() == harnessv1.StopPolicy_STOP_POLICY_STRICT:
			return d.reject(rejectedStrict, "This run ends only with work_complete. Finish what is left with tool calls, then call work_complete with a summary.")
		}
	}
	accepted := d.turn.GetCalledWorkComplete() || !stop.GetRequireWorkComplete()
	message := "The agent completed the work."
	if !accepted {
		message = "The agent stopped without ever calling work_complete."
	}
	return d.end(harnessv1.RunStatus_RUN_STATUS_DONE, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "agent_done", message, accepted)
}

// reject goes on; why is in the model's next request.
func (d *deciding) reject(kind, text string) error {
	d.appended = append(d.appended, runstate.Append(d.s, d.turn.GetTurnNumber(), &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED, Content: runlog.Inline(text),
	})...)
	d.emit(&harnessv1.Event{Event: &harnessv1.Event_StopRejected{StopRejected: &harnessv1.StopRejected{
		Kind: kind, Message: text, Count: d.s.GetWorkCompleteRetries(),
	}}})
	return d.goOn()
}

// goOn goes for another turn.
func (d *deciding) goOn() error {
	if err := d.nextTurn(); err != nil {
		return err
	}
	d.step.To = runstate.Following(d.s.GetWorkflow(), Name)
	d.step.Message = &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
		Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE,
	}}
	return nil
}

func (d *deciding) nextTurn() error {
	if d.s.GetPhase() != harnessv1.Phase_PHASE_REFLECTING {
		return nil // broken off before a turn had begun
	}
	return runstate.Enter(d.step, d.s, harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN)
}

// parkForAnswers rests in AWAITING_TOOL; the same turn goes on afterwards.
func (d *deciding) parkForAnswers() error {
	reason := runstate.Awaiting(d.s, d.turn.GetTurnNumber())
	if reason == nil {
		return errors.New("stopdecision: the turn waits for answers and no call is pending")
	}
	d.s.StopReason = reason
	d.park(&harnessv1.Parked{Reason: reason, Pending: runstate.Awaited(d.s), WakeAt: runstate.FirstDeadline(d.s)})
	return nil
}

func (d *deciding) parkForOutage() error {
	if err := d.nextTurn(); err != nil {
		return err
	}
	if err := runstate.Enter(d.step, d.s, harnessv1.PhaseInput_PHASE_INPUT_PAUSE); err != nil {
		return err
	}
	d.s.StopReason = &harnessv1.StopReason{
		Kind:    "provider_unavailable",
		Message: d.turn.GetError().GetMessage(),
		Details: &harnessv1.StopDetails{Turn: d.turn.GetTurnNumber()},
	}
	d.emit(&harnessv1.Event{Event: &harnessv1.Event_SessionPause{SessionPause: &harnessv1.SessionPause{Reason: d.s.GetStopReason()}}})
	wake := d.in.GetNow().AsTime().Add(d.s.GetConfig().GetModel().GetOutageRetry().AsDuration())
	d.park(&harnessv1.Parked{Reason: d.s.GetStopReason(), WakeAt: timestamppb.New(wake)})
	return nil
}

func (d *deciding) park(parked *harnessv1.Parked) {
	runstate.StopClock(d.s, d.in.GetNow().AsTime())
	d.s.Status, d.s.ParkVersion = harnessv1.RunStatus_RUN_STATUS_PARKED, 0 // set by the commit
	d.s.WakeAt = parked.GetWakeAt()
	d.step.To = runlog.Park
	d.step.Message = &harnessv1.Step_Parked{Parked: parked}
}

// end ends the run.
func (d *deciding) end(status harnessv1.RunStatus, input harnessv1.PhaseInput, kind, message string, accepted bool) error {
	s := d.s
	if err := runstate.Enter(d.step, s, input); err != nil {
		return err
	}
	if s.GetTurn().GetOpen() {
		runstate.EndTurn(s) // it had begun, and its number is not used again
	}
	now := d.in.GetNow().AsTime()
	runstate.StopClock(s, now)
	s.Status, s.Accepted, s.PendingToolCalls, s.WakeAt = status, accepted, nil, nil
	s.StopReason = &harnessv1.StopReason{Kind: kind, Message: message, Details: &harnessv1.StopDetails{
		Turn:                         d.turn.GetTurnNumber(),
		WorkCompleteCalled:           d.turn.GetCalledWorkComplete(),
		WorkCompleteRetriesExhausted: s.GetWorkCompleteRetries() > s.GetConfig().GetStop().GetWorkCompleteMaxRetries(),
	}}
	d.emit(&harnessv1.Event{Event: &harnessv1.Event_SessionComplete{SessionComplete: &harnessv1.SessionComplete{
		Status: status, Accepted: accepted, Reason: s.GetStopReason(),
	}}})
	d.step.To = runlog.End
	d.step.Message = &harnessv1.Step_Result{Result: runstate.Result(s, now)}
	return nil
}

func (d *deciding) emit(e *harnessv1.Event) {
	d.events = append(d.events, runstate.Event(d.s, d.turn.GetTurnNumber(), e))
}
