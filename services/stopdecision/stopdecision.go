// Package stopdecision decides, after each turn, whether a run continues, parks or
// ends. No other executor ends runs.
//
// # Layers
//
// The first layer that matches decides:
//
//  0. The run is cancelled: it ends. It is interrupted: repair parks it. Calls wait
//     for answers from outside: it parks. No provider can be reached: it parks with a
//     timer, and the turn does not count. So it does when workers died at its step, three
//     times in a row. A model refused the request as too long, for the
//     first time in a row: it continues with a compaction, and the turn does not count.
//  1. The turn failed for another reason: the run fails. There is no plan: it is done.
//  2. max_turns turns are used up: the run is done and not accepted.
//  3. A strict loop survived its corrections, or nothing made progress: the run is
//     stalled. A hook wants a review: it parks. A hook wants another plan: it continues.
//  4. The agent considers itself done: while sub-agents work in the background, the run parks until
//     one ends, and gets another turn. Else the gates decide, in order (gates.go).
//  5. Otherwise the run continues with another turn.
//
// A layer that rejects a stop appends a message with its reason for the model.
//
// # Observations
//
// The decision is pure. It returns what it needs to know of the outside: the state of
// an output of the contract (KeyCheck), the verdicts of hooks, and, before the run ends or
// parks for anything but an answer, that its background commands are dead. An observation
// under KeyStop reports that an interrupt or a cancel arrived during the observations.
package stopdecision

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name of the executor.
const Name = workflow.StopDecision

// Keys of observations. The id of an output follows KeyCheck.
const (
	KeyCheck = "check:"
	KeyStop  = "stop"
)

// decision is the state of one decision.
type decision struct {
	*runstate.Draft
	in         *harnessv1.StepInput
	definition *agent.Definition
	turn       *harnessv1.TurnComplete
	s          *harnessv1.Snapshot

	contractVerified, itemsVerified bool
	used                            []*harnessv1.Usage // by jobs, not counted yet
	judged                          bool               // the work, by this decision
}

// ErrOver means that the run of a step is over.
var ErrOver = errors.New("the phase is DONE: a run that is over has no turn to decide about")

// Decide is DecideWith for a step that holds the definition of its run itself. Settings
// that the step leaves out have their defaults. It returns ErrOver for the phase DONE.
func Decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	if in.GetStep().GetSnapshot().GetPhase() == harnessv1.Phase_PHASE_DONE {
		return nil, ErrOver
	}
	definition, err := agent.FromStep(in.GetStep())
	if err != nil {
		return nil, err
	}
	if in.GetStep().GetSnapshot() != nil {
		in = proto.CloneOf(in)
		runstate.FillDefaults(in.GetStep().GetSnapshot(), harnessv1.Phase_PHASE_REFLECTING)
	}
	return DecideWith(in, definition)
}

// DecideWith returns the outcome of a step with a TurnComplete, or the observations
// that it needs first. definition is that of the run.
func DecideWith(in *harnessv1.StepInput, definition *agent.Definition) (*harnessv1.StepOutput, error) {
	turn := in.GetStep().GetTurnComplete()
	if turn == nil {
		return nil, errors.New("stopdecision: the step has no turn_complete")
	}
	if in.GetStep().GetSnapshot() == nil {
		return nil, errors.New("stopdecision: the step has no snapshot")
	}
	s := runstate.Clone(in.GetStep().GetSnapshot())
	d := &decision{Draft: runstate.NewStep(Name, s, turn.GetTurnNumber()), in: in, definition: definition, turn: turn, s: s}
	d.Step.Observed = in.GetObserved()
	if err := d.decide(); err != nil {
		if needs := new(agent.NeedsError); errors.As(err, &needs) {
			return needs.Output(), nil
		}
		if wait := new(agent.WaitError); errors.As(err, &wait) {
			return wait.Output(), nil
		}
		return nil, err
	}
	return d.Output(), nil
}

// decide tries the layers in order.
func (d *decision) decide() error {
	s, t := d.s, d.turn
	if f := t.GetFinish(); f != nil {
		d.contractVerified, d.itemsVerified = f.GetContractVerified(), f.GetItemsVerified()
		return d.end(f.GetStatus(), f.GetInput(), f.GetKind(), f.GetMessage(), f.GetAccepted())
	}
	if t.GetError().GetDeaths() == 0 {
		s.PoisonParks = 0 // the step that workers died at is done
	}
	if t.GetError() != nil {
		return d.failTurn()
	}
	switch {
	case t.GetInterrupted():
		return d.continueRun() // repair parks it: only repair takes items from the inbox
	case t.GetAwaiting():
		return d.parkForAnswers()
	case s.GetTurnCount() >= s.GetMaxTurns():
		if err := d.refreshCoverage(); err != nil {
			return err
		}
		return d.end(harnessv1.RunStatus_RUN_STATUS_DONE, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "max_turns",
			fmt.Sprintf("All %d turns are used up.", s.GetMaxTurns()), false)
	case d.stopRequested():
		return d.continueRun() // it arrived during an observation; repair takes it from the inbox
	}
	if !t.GetRetaken() { // the first decision over the turn has checked its progress
		if ended, err := d.checkProgress(); ended || err != nil {
			return err
		}
	}
	if why := s.GetHooks().GetPause(); why != "" {
		return d.parkForReview(why)
	}
	if s.GetHooks().GetReplan() != "" {
		if t.GetAgentDone() {
			d.Guide("plan", "", "The end of the work was not judged, because another plan is made. Call work_complete again when what it asks for is done.")
		}
		return d.continueRun()
	}
	if t.GetAgentDone() {
		switch {
		case len(tree.Untold(s)) > 0:
			return d.continueRun() // the agent has not read the result yet
		case len(tree.InBackground(s)) > 0:
			return d.parkForAgents()
		}
		return d.gates()
	}
	return d.continueRun()
}

// stopRequested reports whether an interrupt or a cancel arrived during an observation.
func (d *decision) stopRequested() bool { return agent.Observation(d.in, KeyStop).GetStopAsked() }

// failTurn decides about a turn that ended with an error.
func (d *decision) failTurn() error {
	kind, message := d.turn.GetError().GetKind(), d.turn.GetError().GetMessage()
	switch kind {
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED:
		d.Emit(event.RunCancelled(message, d.turn.GetError().GetCaller()))
		return d.end(harnessv1.RunStatus_RUN_STATUS_CANCELLED, harnessv1.PhaseInput_PHASE_INPUT_FAIL, "cancelled", message, false)
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE:
		return d.parkForOutage()
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON:
		if d.turn.GetError().GetDeaths() > 0 {
			if parked, err := d.parkForPoison(); parked || err != nil {
				return err
			}
		}
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_NO_PLAN:
		input := harnessv1.PhaseInput_PHASE_INPUT_FAIL
		if d.s.GetPhase() == harnessv1.Phase_PHASE_PLANNING {
			input = harnessv1.PhaseInput_PHASE_INPUT_NO_PLAN
		}
		return d.end(harnessv1.RunStatus_RUN_STATUS_DONE, input, runstate.ErrorKind(kind), message, false)
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED:
		if d.compactionHelps() {
			return d.continueRun()
		}
	default: // the run fails, below
	}
	if err := d.notify(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, "turn", map[string]any{"error": message}); err != nil {
		return err
	}
	return d.end(harnessv1.RunStatus_RUN_STATUS_FAILED, harnessv1.PhaseInput_PHASE_INPUT_FAIL, runstate.ErrorKind(kind), message, false)
}

// compactionHelps reports whether the turn failed because a model refused its request as too
// long, and a compaction and another try may help: they have not failed before. When
// compaction itself has found nothing to free, no turn has ended.
func (d *decision) compactionHelps() bool {
	b := d.s.GetTokenBudget()
	return runstate.Compacts(d.s) && b.GetExceeded() && b.GetRefusals() == 1 && d.s.GetPhase() == harnessv1.Phase_PHASE_REFLECTING
}

// continueRun sends the run into another turn. If a hook asked for another plan, the
// plan comes first.
func (d *decision) continueRun() error {
	if err := d.leaveReflection(); err != nil {
		return err
	}
	d.Step.To = workflow.Next(d.s.GetWorkflow(), Name)
	d.Step.Message = &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
		Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE,
	}}
	return nil
}

// leaveReflection changes the phase for another turn. A run that was stopped before its
// turn began is in another phase, and stays there.
func (d *decision) leaveReflection() error {
	if d.s.GetPhase() != harnessv1.Phase_PHASE_REFLECTING {
		return nil
	}
	if d.s.GetHooks().GetReplan() != "" {
		return d.Enter(harnessv1.PhaseInput_PHASE_INPUT_REPLAN)
	}
	return d.Enter(harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN)
}

func (d *decision) end(status harnessv1.RunStatus, input harnessv1.PhaseInput, kind, message string, accepted bool) error {
	s := d.s
	if err := d.endBackground(); err != nil {
		return err
	}
	if !tree.Stop(s, harnessv1.ChildWant_CHILD_WANT_END) {
		return d.parkStopping(&harnessv1.Finish{
			Status: status, Input: input, Kind: kind, Message: message, Accepted: accepted,
			ContractVerified: d.contractVerified, ItemsVerified: d.itemsVerified,
		})
	}
	if err := d.Enter(input); err != nil {
		return err
	}
	if s.GetTurn().GetOpen() {
		runstate.EndTurn(s) // it began, so its number is not used again
	}
	if status != harnessv1.RunStatus_RUN_STATUS_CANCELLED {
		message += d.failedHooks()
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
	if err := d.closeQuality(); err != nil {
		return err
	}
	d.Emit(event.SessionComplete(status, accepted, s.GetStopReason()))
	payload := map[string]any{"status": statusName(status), "accepted": accepted, "kind": kind, "message": message}
	for _, topic := range []harnessv1.HookTopic{harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE, harnessv1.HookTopic_HOOK_TOPIC_SESSION_END} {
		if err := d.notify(topic, "end", payload); err != nil {
			return err
		}
	}
	s.Hooks = nil // the run has no further step that they could change
	d.Step.To = runlog.End
	d.Step.Message = &harnessv1.Step_Result{Result: runstate.Result(s, now)}
	return nil
}

// endBackground has the background commands of the run killed.
func (d *decision) endBackground() error {
	if len(d.s.GetBackgroundCommands()) == 0 {
		return nil
	}
	killed := agent.Observation(d.in, runstate.KeyBackground)
	if killed == nil {
		return &agent.NeedsError{Keys: []string{runstate.KeyBackground}}
	}
	d.EndBackground(killed.GetBackground())
	return nil
}

// appendMessage appends a message that the model reads before its next turn. A later one on
// the same topic replaces it.
func (d *decision) appendMessage(kind harnessv1.MessageKind, topic, text string) {
	d.Append(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: kind, Topic: d.Topic(topic), Content: content.Inline(text)})
}
