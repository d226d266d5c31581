// Package stopdecision decides, after each turn, whether a run goes on, rests or
// ends. It alone ends runs.
//
// # The layers
//
// The first that matches decides:
//
//  0. cancelled → ended; interrupted → on to repair, which parks it; something is
//     awaited from outside → parked; no provider → parked with a timer, the turn
//     not counted;
//  1. any other error of the turn → failed; no plan → done;
//  2. max_turns turns → done, not accepted, whatever the agent says;
//  3. a strict loop that survived its corrections, or nothing that moved → stalled; a
//     hook wants a review → parked; another plan is asked for → on to it;
//  4. the agent considers itself done → the gates (gates.go), in order;
//  5. otherwise → another turn.
//
// Whatever rejects a stop is told to the model as a message, with its specifics.
//
// # Facts
//
// The decision is pure. What it has to know of the world outside it asks for: how
// an output of the contract stands (check:OUTPUT) and what subscribers say. Under
// stop it is told that an interrupt or a cancel came in while that was looked at.
package stopdecision

import (
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name of the executor.
const Name = workflow.StopDecision

// Keys of observations. KeyCheck is followed by the id of an output.
const (
	KeyCheck = "check:"
	KeyStop  = "stop"
)

// deciding is one decision under way.
type deciding struct {
	in       *harnessv1.StepInput
	made     *agent.Definition
	turn     *harnessv1.TurnComplete
	s        *harnessv1.Snapshot
	step     *harnessv1.Step
	appended []*harnessv1.Message
	events   []*harnessv1.Event

	contractVerified, itemsVerified bool
}

// Decide is DecideWith for a step that holds the definition of its run itself.
func Decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	made, err := agent.FromStep(in.GetStep())
	if err != nil {
		return nil, err
	}
	return DecideWith(in, made)
}

// DecideWith maps a step with a TurnComplete to its outcome, or to what it has to know
// first. made is the definition of the run.
func DecideWith(in *harnessv1.StepInput, made *agent.Definition) (*harnessv1.StepOutput, error) {
	turn := in.GetStep().GetTurnComplete()
	if turn == nil {
		return nil, errors.New("stopdecision: the step holds no TurnComplete")
	}
	if in.GetStep().GetSnapshot() == nil {
		return nil, errors.New("stopdecision: the step holds no snapshot")
	}
	d := &deciding{
		in:   in,
		made: made,
		turn: turn,
		s:    runstate.Clone(in.GetStep().GetSnapshot()),
		step: &harnessv1.Step{From: Name, Observed: in.GetObserved()},
	}
	runstate.FillDefaults(d.s, harnessv1.Phase_PHASE_REFLECTING)
	if err := d.decide(); err != nil {
		if needed := new(agent.NeedsError); errors.As(err, &needed) {
			return needed.Output(), nil
		}
		return nil, err
	}
	d.step.Snapshot = d.s
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{
		Step: d.step, Appended: d.appended, Events: d.events,
	}}}, nil
}

// decide goes through the layers.
func (d *deciding) decide() error {
	s, t := d.s, d.turn
	if t.GetError() != nil {
		return d.failed()
	}
	switch {
	case t.GetInterrupted():
		return d.goOn() // repair parks it: only repair takes items in
	case t.GetAwaiting():
		return d.parkForAnswers()
	case s.GetTurnCount() >= s.GetMaxTurns():
		if err := d.lastLook(); err != nil {
			return err
		}
		return d.end(harnessv1.RunStatus_RUN_STATUS_DONE, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "max_turns",
			fmt.Sprintf("All %d turns are used up.", s.GetMaxTurns()), false)
	case d.stopAsked():
		return d.goOn() // it came while something was looked at; repair takes it in
	}
	if !t.GetRetaken() { // it was watched then
		if ended, err := d.watch(); ended || err != nil {
			return err
		}
	}
	if why := s.GetHooks().GetPause(); why != "" {
		return d.parkForReview(why)
	}
	if s.GetHooks().GetReplan() != "" {
		if t.GetAgentDone() {
			d.guide("plan", "", "The end of the work was not judged, because another plan is made. Call work_complete again when what it asks for is done.")
		}
		return d.goOn()
	}
	if t.GetAgentDone() {
		return d.gates()
	}
	return d.goOn()
}

// stopAsked says that an interrupt or a cancel came in while something was looked at.
func (d *deciding) stopAsked() bool { return agent.Observation(d.in, KeyStop).GetStopAsked() }

// failed is for turns that could not be carried out.
func (d *deciding) failed() error {
	kind, message := d.turn.GetError().GetKind(), d.turn.GetError().GetMessage()
	switch kind {
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED:
		d.emit(&harnessv1.Event{Event: &harnessv1.Event_RunCancelled{RunCancelled: &harnessv1.RunCancelled{Reason: message}}})
		return d.end(harnessv1.RunStatus_RUN_STATUS_CANCELLED, harnessv1.PhaseInput_PHASE_INPUT_FAIL, "cancelled", message, false)
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE:
		return d.parkForOutage()
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_NO_PLAN:
		input := harnessv1.PhaseInput_PHASE_INPUT_FAIL
		if d.s.GetPhase() == harnessv1.Phase_PHASE_PLANNING {
			input = harnessv1.PhaseInput_PHASE_INPUT_NO_PLAN
		}
		return d.end(harnessv1.RunStatus_RUN_STATUS_DONE, input, runstate.ErrorKind(kind), message, false)
	}
	if err := d.fire(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, "turn", map[string]any{"error": message}); err != nil {
		return err
	}
	return d.end(harnessv1.RunStatus_RUN_STATUS_FAILED, harnessv1.PhaseInput_PHASE_INPUT_FAIL, runstate.ErrorKind(kind), message, false)
}

// goOn sends the run into another turn, with another plan before it where one was
// asked for.
func (d *deciding) goOn() error {
	if err := d.nextTurn(); err != nil {
		return err
	}
	d.step.To = workflow.Next(d.s.GetWorkflow(), Name)
	d.step.Message = &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
		Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE,
	}}
	return nil
}

// nextTurn changes the phase for another turn. Where no turn had begun the phase is
// another than REFLECTING, and stays.
func (d *deciding) nextTurn() error {
	if d.s.GetPhase() != harnessv1.Phase_PHASE_REFLECTING {
		return nil // broken off before a turn had begun
	}
	if d.s.GetHooks().GetReplan() != "" {
		return runstate.ChangePhase(d.step, d.s, harnessv1.PhaseInput_PHASE_INPUT_REPLAN)
	}
	return runstate.ChangePhase(d.step, d.s, harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN)
}

// end ends the run.
func (d *deciding) end(status harnessv1.RunStatus, input harnessv1.PhaseInput, kind, message string, accepted bool) error {
	s := d.s
	if err := runstate.ChangePhase(d.step, s, input); err != nil {
		return err
	}
	if s.GetTurn().GetOpen() {
		runstate.EndTurn(s) // it had begun, and its number is not used again
	}
	now := d.in.GetNow().AsTime()
	runstate.StopClock(s, now)
	s.Status, s.Accepted, s.PendingToolCalls, s.WakeAt, s.Hooks = status, accepted, nil, nil, nil
	s.StopReason = &harnessv1.StopReason{Kind: kind, Message: message, Details: &harnessv1.StopDetails{
		Turn:                         d.turn.GetTurnNumber(),
		WorkCompleteCalled:           d.turn.GetCalledWorkComplete(),
		WorkCompleteRetriesExhausted: s.GetWorkCompleteRetries() > s.GetConfig().GetStop().GetWorkCompleteMaxRetries(),
		ContractVerified:             d.contractVerified,
		WorkItemsVerified:            d.itemsVerified,
	}}
	d.emit(&harnessv1.Event{Event: &harnessv1.Event_SessionComplete{SessionComplete: &harnessv1.SessionComplete{
		Status: status, Accepted: accepted, Reason: s.GetStopReason(),
	}}})
	payload := map[string]any{"status": statusName(status), "accepted": accepted, "kind": kind, "message": message}
	for _, topic := range []harnessv1.HookTopic{harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE, harnessv1.HookTopic_HOOK_TOPIC_SESSION_END} {
		if err := d.fire(topic, "end", payload); err != nil {
			return err
		}
	}
	s.Hooks = nil // nothing follows that they could change
	d.step.To = runlog.End
	d.step.Message = &harnessv1.Step_Result{Result: runstate.Result(s, now)}
	return nil
}

func (d *deciding) emit(e *harnessv1.Event) {
	d.events = append(d.events, runstate.Event(d.s, d.turn.GetTurnNumber(), e))
}

// tell appends what the model is told before its next turn.
func (d *deciding) tell(kind harnessv1.MessageKind, text string) {
	d.appended = append(d.appended, runstate.AppendMessages(d.s, d.turn.GetTurnNumber(), &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: kind, Content: content.Inline(text),
	})...)
}

// guide tells the model something that is no rejection.
func (d *deciding) guide(kind, rule, text string) {
	d.appended = append(d.appended, runstate.AppendMessages(d.s, d.turn.GetTurnNumber(), runstate.GuidanceMessage(text))...)
	d.emit(runstate.Guided(kind, rule, text))
}
