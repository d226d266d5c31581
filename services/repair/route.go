package repair

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

const unpaused = harnessv1.Phase_PHASE_UNSPECIFIED

// causeMessage is the cause of a resume by a user message, after which the agent
// always gets a turn.
const causeMessage = "user_message"

// route decides where the run goes, after the inbox was taken in.
func (d *decision) route() error {
	s := d.s
	d.answerUnknown()
	if decided, err := d.routeTree(); decided || err != nil {
		return err
	}
	if !runstate.Ended(s) {
		if err := d.dropOrphans(); err != nil {
			return err
		}
	}
	switch {
	case runstate.Ended(s):
		return d.endAgain()
	case d.cancel != nil:
		return d.handOnCancelled()
	case d.failure != nil:
		return d.handOnFailed()
	case d.interrupt != nil:
		return d.parkInterrupted()
	case len(runstate.AwaitedCalls(s)) > 0:
		if err := d.awaitAgain(); err != nil {
			return err
		}
		return d.parkAgain()
	case s.GetPausedPhase() != unpaused && d.resumed == "":
		return d.parkAgain()
	}
	if s.GetPausedPhase() != unpaused {
		if s.Hooks != nil && d.resumed != "" {
			s.Hooks.Pause = "" // the review has taken place
		}
		if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_RESUME); err != nil {
			return err
		}
		d.Emit(event.SessionResume(d.resumed))
	}
	s.Status, s.StopReason, s.WakeAt = harnessv1.RunStatus_RUN_STATUS_RUNNING, nil, nil
	runstate.StartClock(s, d.now)
	if s.GetPhase() == harnessv1.Phase_PHASE_REFLECTING { // the stop decision parked it
		if d.resumed != causeMessage {
			return d.decideStopAgain()
		}
		if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN); err != nil {
			return err
		}
	}
	if d.replans() {
		if err := d.replan(); err != nil {
			return err
		}
		if d.failure != nil {
			return d.handOnFailed()
		}
	}
	return d.continueTurn()
}

// awaitAgain has a run that is resumed wait again for its calls in their turn: the sub-agents of those that it has kept continue. One that
// waits for a review stays paused.
func (d *decision) awaitAgain() error {
	review := func(c *harnessv1.PendingCall) bool { return c.GetKind() == runstate.KindReview }
	if d.resumed == "" || d.s.GetPausedPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL || slices.ContainsFunc(runstate.AwaitedCalls(d.s), review) {
		return nil
	}
	if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_RESUME); err != nil {
		return err
	}
	d.Emit(event.SessionResume(d.resumed))
	return nil
}

// replans reports whether another plan is made before the run continues.
func (d *decision) replans() bool {
	switch d.s.GetPhase() {
	case harnessv1.Phase_PHASE_PLANNING:
		return true
	case harnessv1.Phase_PHASE_EXECUTING:
		return d.s.GetHooks().GetReplan() != "" && !d.s.GetTurn().GetOpen()
	default:
		return false
	}
}

// continueTurn hands the run on: to the rest of an open turn, or to the next
// one, unless a budget is used up or a hook wants a review first.
func (d *decision) continueTurn() error {
	s := d.s
	if waits, err := d.open(); waits || err != nil {
		return err
	}
	if open := s.GetTurn().GetOpen(); s.GetPhase() == harnessv1.Phase_PHASE_AWAITING_TOOL || open && s.GetPhase() == harnessv1.Phase_PHASE_EXECUTING {
		if ended, err := d.continueOpenTurn(); ended || err != nil {
			return err
		}
	} else if warn := runstate.ExceededBudget(s, d.now); warn != nil {
		return d.parkExceeded(warn)
	} else if d.asksMore() {
		return d.pauseForAgents()
	} else if why := s.GetHooks().GetPause(); why != "" {
		s.Hooks.Pause = ""
		return d.pause(&harnessv1.StopReason{Kind: runstate.KindReview, Message: why, Details: &harnessv1.StopDetails{Turn: d.Turn}})
	}
	if !s.GetTurn().GetOpen() {
		if err := d.seeServers(); err != nil {
			return err
		}
		if err := d.addEnded(); err != nil {
			return err
		}
		if d.failure != nil { // a hook has broken off the run
			return d.handOnFailed()
		}
	}
	d.Step.To = workflow.Next(s.GetWorkflow(), Name)
	d.Step.Message = &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{
		RepairsMade: d.repairs, InputsApplied: d.applied,
	}}
	return nil
}

// endAgain commits the end again, with the cursor moved.
func (d *decision) endAgain() error {
	d.Step.To = runlog.End
	d.Step.Message = &harnessv1.Step_Result{Result: runstate.Result(d.s, d.now)}
	return nil
}

func (d *decision) handOnCancelled() error {
	d.answerPending("The run was cancelled before this call was answered.")
	if err := d.endHeld(); err != nil {
		return err
	}
	d.toStopDecision(&harnessv1.TurnComplete{Error: &harnessv1.TurnError{
		Kind:    harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED,
		Message: cmp.Or(d.cancel.GetReason(), "cancelled"),
		Caller:  d.canceller,
	}})
	return nil
}

func (d *decision) handOnFailed() error {
	if err := d.dropHeld("The run failed before this call was answered."); err != nil {
		return err
	}
	if d.s.GetTurn().GetOpen() { // an answer from outside has ended the turn
		if _, err := d.stepEnded("error", d.failure.GetMessage()); err != nil {
			return err
		}
	}
	d.toStopDecision(&harnessv1.TurnComplete{Error: d.failure})
	return nil
}

// decideStopAgain has the stop decision taken again over the turn after which it
// parked the run: the review has taken place, or the user has answered.
func (d *decision) decideStopAgain() error {
	t := d.s.GetTurn()
	d.toStopDecision(&harnessv1.TurnComplete{
		AgentDone: t.GetAgentDone(), CalledWorkComplete: t.GetCalledWorkComplete(), Retaken: true, Answered: d.questionAnswered,
	})
	return nil
}

// toStopDecision addresses the step to the stop decision.
func (d *decision) toStopDecision(complete *harnessv1.TurnComplete) {
	d.s.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING
	complete.TurnNumber = d.Turn
	d.Step.To = workflow.StopDecision
	d.Step.Message = &harnessv1.Step_TurnComplete{TurnComplete: complete}
}

// continueOpenTurn hands on the rest of a turn whose calls have answers, and ends the turn
// if nothing of it is left. The run is EXECUTING if its compaction was broken off before the
// rest began.
func (d *decision) continueOpenTurn() (ended bool, err error) {
	d.refuseBlocked()
	if err := d.endHeld(); err != nil {
		return false, err
	}
	executing := d.s.GetPhase() == harnessv1.Phase_PHASE_EXECUTING
	switch left := len(runstate.ApprovedCalls(d.s)) > 0; {
	case left && executing:
		return false, nil
	case left:
		return false, d.Enter(harnessv1.PhaseInput_PHASE_INPUT_ANSWERED)
	case executing:
		return true, d.endTurn(harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED)
	}
	return true, d.endTurn(harnessv1.PhaseInput_PHASE_INPUT_ANSWERED_LAST)
}

// endTurn ends a turn whose last open call got its answer from outside. The step
// goes to the executor that follows the turn, as if the turn had ended there.
func (d *decision) endTurn(input harnessv1.PhaseInput) error {
	if err := d.Enter(input); err != nil {
		return err
	}
	turn := d.Turn
	runstate.EndTurn(d.s)
	d.Turn = presentTurn(d.s)
	d.Step.To = workflow.Next(d.s.GetWorkflow(), workflow.Turn)
	ended := &harnessv1.TurnComplete{
		TurnNumber:         turn,
		AgentDone:          d.s.GetTurn().GetAgentDone(),
		CalledWorkComplete: d.s.GetTurn().GetCalledWorkComplete(),
	}
	d.Step.Message = &harnessv1.Step_TurnComplete{TurnComplete: ended}
	after, err := d.stepEnded("completed", "")
	if err != nil {
		return err
	}
	if after.Abort != "" {
		ended.Error = &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, Message: after.Abort}
		d.Step.To = workflow.StopDecision
	}
	return nil
}

// stepEnded emits the end of a turn that waited and calls the hooks of after_step. The turn's worker has
// emitted its end for the wait, so the turn starts again first.
func (d *decision) stepEnded(outcome, message string) (hook.Effects, error) {
	d.Emit(event.StepStart(1, true))
	d.Emit(event.StepEnd(outcome, message))
	return d.call(harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP, "after", "", agent.StepPayload(outcome, message, d.s.GetTurn()))
}

func (d *decision) parkInterrupted() error {
	if !d.halted { // at its parent's order, what it waits for stays awaited
		d.answerPending("The run was interrupted before this call was answered.")
	} else if err := d.dropHeld("The run was interrupted before this call was answered."); err != nil {
		return err
	}
	d.Emit(event.RunInterrupted(d.interrupt.GetReason(), d.interrupter))
	return d.pause(&harnessv1.StopReason{
		Kind:    "interrupted",
		Message: cmp.Or(d.interrupt.GetReason(), "Interrupted; resume it or send a message to continue."),
		Details: &harnessv1.StopDetails{Turn: d.Turn},
	})
}

func (d *decision) parkExceeded(warn *harnessv1.BudgetWarn) error {
	if _, err := d.call(harnessv1.HookTopic_HOOK_TOPIC_ON_BUDGET_EXCEEDED, warn.GetBudget(), "", map[string]any{
		"budget": warn.GetBudget(), "limit": warn.GetLimit(), "used": warn.GetUsed(),
	}); err != nil {
		return err
	}
	d.Emit(event.BudgetWarn(warn))
	counted := ""
	if which := warn.GetBudget(); (which == "tokens" || which == "cost") && d.s.GetSpent().GetUsage().GetEstimated() {
		counted = ", in part estimated: a provider reports no usage"
	}
	return d.pause(&harnessv1.StopReason{
		Kind:    "budget_exceeded:" + warn.GetBudget(),
		Message: fmt.Sprintf("The budget of %s is used up (%.6g of %.6g%s); resume with a larger one to go on.", warn.GetBudget(), warn.GetUsed(), warn.GetLimit(), counted),
		Details: &harnessv1.StopDetails{Turn: d.s.GetTurnCount()},
	})
}

// pause parks a running run, or keeps one parked for another reason. Its background commands
// are killed.
func (d *decision) pause(reason *harnessv1.StopReason) error {
	if err := d.endBackground(); err != nil {
		return err
	}
	if paused := d.s.GetPausedPhase() != unpaused; !paused || runstate.WaitsForAgents(d.s.GetStopReason()) {
		if !paused {
			if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_PAUSE); err != nil {
				return err
			}
		}
		d.Emit(event.SessionPause(reason))
		if _, err := d.call(harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE, "", "", map[string]any{"kind": reason.GetKind(), "message": reason.GetMessage()}); err != nil {
			return err
		}
	}
	d.s.StopReason, d.s.ParkVersion, d.s.WakeAt = reason, 0, nil
	return d.park()
}

// endBackground has the background commands of the run killed.
func (d *decision) endBackground() error {
	if err := d.endHeld(); err != nil {
		return err
	}
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

// parkAgain keeps a parked run parked, for the same reason.
func (d *decision) parkAgain() error {
	if len(runstate.AwaitedCalls(d.s)) > 0 && !d.stopped() {
		// The awaited calls and their deadline may have changed. A new deadline makes
		// a new park, so that the timer of the old one has no effect.
		if reason := runstate.AwaitReason(d.s, d.Turn); reason.GetKind() == runstate.KindAgent {
			d.s.StopReason = tree.WaitReason(d.s, d.Turn)
		} else if reason != nil {
			d.s.StopReason = reason
		}
		runstate.ParkClock(d.s, d.now)
		if first := runstate.FirstDeadline(d.s); !proto.Equal(first, d.s.GetWakeAt()) {
			d.s.WakeAt, d.s.ParkVersion = first, 0
		}
	}
	if d.s.GetStopReason() == nil {
		return errors.New("repair: the parked run has no stop reason")
	}
	return d.park()
}

// stopped reports whether the run is parked for an interrupt, or for one of its budgets: an answer does not resume it.
func (d *decision) stopped() bool {
	reason := d.s.GetStopReason()
	return d.s.GetPausedPhase() != unpaused && d.resumed == "" && reason.GetDetails().GetRunId() == "" &&
		(reason.GetKind() == "interrupted" || strings.HasPrefix(reason.GetKind(), "budget_exceeded:"))
}

func (d *decision) park() error {
	runstate.ParkClock(d.s, d.now)
	d.s.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
	d.Step.To = runlog.Park
	d.Step.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{
		Reason: d.s.GetStopReason(), Pending: runstate.AwaitedCalls(d.s), WakeAt: d.s.GetWakeAt(),
	}}
	return nil
}
