// Package repair decides what repair does with a RepairTrigger: initialise the
// run once, take in what came from outside, settle calls that never got an
// answer, and hand the run on, park it or give it up.
//
// # Invariants
//
//   - Only repair takes items out of the inbox, in order. The cursor moves past
//     every item it was shown, also past those it refuses, and moves in the
//     same record as their effects.
//   - An item or an answer has one effect, however often it is sent.
//   - Repairing a repaired run changes nothing.
//
// Decide is a pure function of the step, the definition of the run and the
// observations: under NeedInbox, for the first trigger also NeedEnvironment and
// NeedContext for each context provider, and what subscribers say.
package repair

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name of the executor.
const Name = workflow.Repair

// Keys of the observations that Decide may ask for.
const (
	NeedInbox       = "inbox"
	NeedEnvironment = "environment"
	NeedContext     = "context:" // followed by the name of a context provider
	NeedText        = "text:"    // followed by the digest of a blob of the run
)

// repairing is one decision under way.
type repairing struct {
	in       *harnessv1.StepInput
	made     *agent.Definition
	now      time.Time
	trigger  *harnessv1.RepairTrigger
	s        *harnessv1.Snapshot
	step     *harnessv1.Step
	appended []*harnessv1.Message
	events   []*harnessv1.Event

	item      string               // id of the inbox item that is being taken in
	interrupt *harnessv1.Interrupt // taken in and not cleared since
	cancel    *harnessv1.Cancel
	resumed   string // what lets a resting run go on; empty when nothing does
	reopened  bool
	applied   uint32
	repairs   uint32

	notes   []hook.Note          // what hooks tell the model
	failure *harnessv1.TurnError // why the run cannot go on

	questionAnswered bool   // of the contract, by the user
	drafts           int    // of the plan that is being made
	heard            int    // what subscribers have said
	goal             string // of a segment that is opened here
}

// Decide is DecideWith for a step that holds the definition of its run itself.
func Decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	made, err := agent.FromStep(in.GetStep())
	if err != nil {
		return nil, err
	}
	return DecideWith(in, made)
}

// DecideWith maps a step with a RepairTrigger to its outcome, or to what it has to
// know first. An error means that the input is not one that repair can get.
// made is the definition of the run.
func DecideWith(in *harnessv1.StepInput, made *agent.Definition) (*harnessv1.StepOutput, error) {
	trigger := in.GetStep().GetRepairTrigger()
	if trigger == nil {
		return nil, errors.New("repair: the step holds no RepairTrigger")
	}
	if in.GetStep().GetSnapshot() == nil {
		return nil, errors.New("repair: the step holds no snapshot")
	}
	starting := trigger.GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_START
	keys := []string{NeedInbox}
	if starting {
		keys = append(keys, NeedEnvironment)
		for _, p := range trigger.GetSpec().GetAgent().GetContextProviders() {
			if p.GetGrpc() != "" {
				keys = append(keys, NeedContext+p.GetName())
			}
		}
	}
	needed := &agent.NeedsError{}
	for _, key := range keys {
		if agent.Observation(in, key) == nil {
			needed.Keys = append(needed.Keys, key)
		}
	}
	if len(needed.Keys) > 0 {
		return needed.Output(), nil
	}
	r := &repairing{
		in:      in,
		made:    made,
		now:     in.GetNow().AsTime(),
		trigger: trigger,
		s:       runstate.Clone(in.GetStep().GetSnapshot()),
		step:    &harnessv1.Step{From: Name, Observed: in.GetObserved()},
	}
	if err := r.repair(starting); err != nil {
		if needed := new(agent.NeedsError); errors.As(err, &needed) {
			return needed.Output(), nil
		}
		return nil, err
	}
	r.step.Snapshot = r.s
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{
		Step:     r.step,
		Appended: r.appended,
		Events:   r.events,
	}}}, nil
}

// repair does it all, in order.
func (r *repairing) repair(starting bool) error {
	if starting {
		if err := r.initialise(agent.Observation(r.in, NeedEnvironment).GetEnvironment()); err != nil {
			return err
		}
	}
	if err := r.drain(agent.Observation(r.in, NeedInbox).GetInbox()); err != nil {
		return err
	}
	if err := r.route(); err != nil {
		return err
	}
	r.say()
	return nil
}

// initialise makes the first state out of the spec, once.
func (r *repairing) initialise(environment *harnessv1.Environment) error {
	if r.s.GetConfig() != nil {
		return errors.New("repair: the run was initialised before")
	}
	spec := r.trigger.GetSpec()
	if spec == nil {
		return errors.New("repair: the first trigger holds no spec")
	}
	s := r.s
	s.Config = runstate.Resolve(spec.GetConfig(), catalogue.Lookup(spec.GetAgent().GetModel()).Window)
	s.Workflow = spec.GetWorkflow()
	if len(s.Workflow) == 0 {
		s.Workflow = workflow.Default()
	}
	s.FirstSequence = r.in.GetSequence()
	s.Model, s.FallbackModels = spec.GetAgent().GetModel(), spec.GetAgent().GetFallbackModels()
	s.Workspace = spec.GetWorkspace()
	s.Autonomous, s.Mode = spec.GetAgent().GetAutonomous(), spec.GetAgent().GetMode()
	r.define(spec)
	for _, f := range environment.GetInstructionFiles() {
		s.InstructionFiles = append(s.InstructionFiles, &harnessv1.FileDigest{Path: f.GetPath(), Digest: f.GetDigest()})
	}
	s.GoalPreview = content.Cut(content.Text(spec.GetGoal()), content.MaxPreview)
	if s.CreateTime == nil {
		s.CreateTime = timestamppb.New(r.now)
	}
	s.Phase = harnessv1.Phase_PHASE_IDLE
	runstate.StartClock(s, r.now)
	r.append(0,
		&harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Kept: true, Content: content.Inline(SystemPrompt(spec.GetAgent(), environment, r.contexts(spec), spec.GetClientTools()))},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: proto.CloneOf(spec.GetGoal())},
	)
	if err := r.openSegment(content.Text(spec.GetGoal())); err != nil {
		return err
	}
	if text := contractText(s.GetTaskContract()); text != "" {
		m := runstate.Guidance(text)
		m.Kept = true
		r.append(0, m)
		r.emit(runstate.Guided("contract", "", text))
	}
	return nil
}

// route decides where the run goes after the inbox was taken in.
func (r *repairing) route() error {
	s := r.s
	r.settleUnknown()
	switch {
	case runstate.Ended(s):
		return r.endAgain()
	case r.cancel != nil:
		return r.giveUp()
	case r.failure != nil:
		return r.handOver()
	case r.interrupt != nil:
		return r.parkInterrupted()
	case len(runstate.Awaited(s)) > 0:
		return r.parkAgain()
	case s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED && r.resumed == "":
		return r.parkAgain()
	}
	if s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED {
		if s.Hooks != nil && r.resumed != "" {
			s.Hooks.Pause = "" // somebody has looked
		}
		if err := r.enter(harnessv1.PhaseInput_PHASE_INPUT_RESUME); err != nil {
			return err
		}
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_SessionResume{SessionResume: &harnessv1.SessionResume{Cause: r.resumed}}})
	}
	s.Status, s.StopReason, s.WakeAt = harnessv1.RunStatus_RUN_STATUS_RUNNING, nil, nil
	runstate.StartClock(s, r.now)
	if s.GetPhase() == harnessv1.Phase_PHASE_REFLECTING { // it rested in the stop decision
		if r.resumed != "user_message" {
			return r.retake()
		}
		if err := r.enter(harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN); err != nil {
			return err
		}
	}
	if s.GetPhase() == harnessv1.Phase_PHASE_PLANNING || s.GetHooks().GetReplan() != "" && s.GetPhase() == harnessv1.Phase_PHASE_EXECUTING && !s.GetTurn().GetOpen() {
		if err := r.replan(); err != nil {
			return err
		}
		if r.failure != nil {
			return r.handOver()
		}
	}

	if s.GetPhase() == harnessv1.Phase_PHASE_AWAITING_TOOL {
		r.refuseBlocked()
		if len(runstate.Approved(s)) == 0 {
			return r.closeTurn()
		}
		if err := r.enter(harnessv1.PhaseInput_PHASE_INPUT_ANSWERED); err != nil {
			return err
		}
	} else if warn := runstate.Exceeded(s, r.now); warn != nil {
		return r.parkExceeded(warn)
	} else if why := s.GetHooks().GetPause(); why != "" {
		s.Hooks.Pause = ""
		return r.pause(&harnessv1.StopReason{Kind: runstate.KindReview, Message: why, Details: &harnessv1.StopDetails{Turn: r.turn()}})
	}
	r.step.To = workflow.Next(s.GetWorkflow(), Name)
	r.step.Message = &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{
		RepairsMade: r.repairs, InputsApplied: r.applied,
	}}
	return nil
}

// endAgain commits the end once more, with the cursor moved.
func (r *repairing) endAgain() error {
	r.step.To = runlog.End
	r.step.Message = &harnessv1.Step_Result{Result: runstate.Result(r.s, r.now)}
	return nil
}

// giveUp hands a cancelled run to the stop decision, which alone ends runs.
func (r *repairing) giveUp() error {
	r.answerPending("The run was cancelled before this call was answered.")
	r.s.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING // until the stop decision has it
	r.step.To = workflow.StopDecision
	r.step.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{
		TurnNumber: r.turn(),
		Error: &harnessv1.TurnError{
			Kind:    harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED,
			Message: cmp.Or(r.cancel.GetReason(), "cancelled"),
		},
	}}
	return nil
}

// handOver gives a run that cannot go on to the stop decision.
func (r *repairing) handOver() error {
	r.s.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING
	r.step.To = workflow.StopDecision
	r.step.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: r.turn(), Error: r.failure}}
	return nil
}

// retake has the stop decision taken again over the turn after which the run has come
// to rest: somebody has looked, or answered.
func (r *repairing) retake() error {
	t := r.s.GetTurn()
	r.step.To = workflow.StopDecision
	r.step.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{
		TurnNumber: r.turn(), AgentDone: t.GetAgentDone(), CalledWorkComplete: t.GetCalledWorkComplete(), Retaken: true, Answered: r.questionAnswered,
	}}
	return nil
}

// closeTurn ends a turn whose last open call was answered from outside.
func (r *repairing) closeTurn() error {
	if err := r.enter(harnessv1.PhaseInput_PHASE_INPUT_ANSWERED_LAST); err != nil {
		return err
	}
	turn := r.turn()
	runstate.EndTurn(r.s)
	// To whoever stands behind the turn: it ended here and not there.
	r.step.To = workflow.Next(r.s.GetWorkflow(), workflow.Turn)
	r.step.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{
		TurnNumber:         turn,
		AgentDone:          r.s.GetTurn().GetAgentDone(),
		CalledWorkComplete: r.s.GetTurn().GetCalledWorkComplete(),
	}}
	return nil
}

func (r *repairing) parkInterrupted() error {
	r.answerPending("The run was interrupted before this call was answered.")
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_RunInterrupted{RunInterrupted: &harnessv1.RunInterrupted{Reason: r.interrupt.GetReason()}}})
	return r.pause(&harnessv1.StopReason{
		Kind:    "interrupted",
		Message: cmp.Or(r.interrupt.GetReason(), "Interrupted; a resume or a message lets it go on."),
		Details: &harnessv1.StopDetails{Turn: r.turn()},
	})
}

func (r *repairing) parkExceeded(warn *harnessv1.BudgetWarn) error {
	if _, err := r.call(harnessv1.HookTopic_HOOK_TOPIC_ON_BUDGET_EXCEEDED, warn.GetBudget(), "", map[string]any{
		"budget": warn.GetBudget(), "limit": warn.GetLimit(), "used": warn.GetUsed(),
	}); err != nil {
		return err
	}
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_BudgetWarn{BudgetWarn: warn}})
	return r.pause(&harnessv1.StopReason{
		Kind:    "budget_exceeded:" + warn.GetBudget(),
		Message: fmt.Sprintf("The budget of %s is used up (%.6g of %.6g); resume with a larger one to go on.", warn.GetBudget(), warn.GetUsed(), warn.GetLimit()),
		Details: &harnessv1.StopDetails{Turn: r.s.GetTurnCount()},
	})
}

// pause parks a run that was going, or keeps one parked for another reason.
func (r *repairing) pause(reason *harnessv1.StopReason) error {
	if r.s.GetPausedPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
		if err := r.enter(harnessv1.PhaseInput_PHASE_INPUT_PAUSE); err != nil {
			return err
		}
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_SessionPause{SessionPause: &harnessv1.SessionPause{Reason: reason}}})
		if _, err := r.call(harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE, "", "", map[string]any{"kind": reason.GetKind(), "message": reason.GetMessage()}); err != nil {
			return err
		}
	}
	r.s.StopReason, r.s.ParkVersion, r.s.WakeAt = reason, 0, nil
	return r.park()
}

// parkAgain lets a resting run rest on, for the reason it has.
func (r *repairing) parkAgain() error {
	if len(runstate.Awaited(r.s)) > 0 {
		// Who is waited for, and how long, may have changed. A new time makes it a
		// park of its own: the timer of the former one has no say in it.
		if reason := runstate.Awaiting(r.s, r.turn()); reason != nil {
			r.s.StopReason = reason
		}
		if first := runstate.FirstDeadline(r.s); !proto.Equal(first, r.s.GetWakeAt()) {
			r.s.WakeAt, r.s.ParkVersion = first, 0
		}
	}
	if r.s.GetStopReason() == nil {
		return errors.New("repair: the run waits for answers and has no reason to rest")
	}
	return r.park()
}

func (r *repairing) park() error {
	runstate.StopClock(r.s, r.now)
	r.s.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
	r.step.To = runlog.Park
	r.step.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{
		Reason: r.s.GetStopReason(), Pending: runstate.Awaited(r.s), WakeAt: r.s.GetWakeAt(),
	}}
	return nil
}

func (r *repairing) enter(input harnessv1.PhaseInput) error {
	return runstate.Enter(r.step, r.s, input)
}

func (r *repairing) append(turn uint32, messages ...*harnessv1.Message) {
	r.appended = append(r.appended, runstate.Append(r.s, turn, messages...)...)
}

func (r *repairing) emit(e *harnessv1.Event) {
	r.events = append(r.events, runstate.Event(r.s, r.turn(), e))
}

// turn is the turn that is open, or the one that ended last.
func (r *repairing) turn() uint32 {
	if r.s.GetTurn().GetOpen() {
		return r.s.GetTurn().GetNumber()
	}
	return r.s.GetTurnCount()
}
