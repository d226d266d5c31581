package stopdecision

import (
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// parkForAnswers parks the run until its pending calls are answered. A call that a hook
// wants reviewed pauses the run; every other answer is a part of the turn.
func (d *decision) parkForAnswers() error {
	reason := runstate.AwaitReason(d.s, d.turn.GetTurnNumber())
	if reason == nil {
		return errors.New("stopdecision: the turn awaits answers, but no call is pending")
	}
	if reason.GetKind() == runstate.KindAgent {
		reason = tree.WaitReason(d.s, d.turn.GetTurnNumber())
	}
	if reason.GetKind() == runstate.KindReview {
		if err := d.pause(reason); err != nil {
			return err
		}
	}
	d.s.StopReason = reason
	d.park(&harnessv1.Parked{Reason: reason, Pending: runstate.AwaitedCalls(d.s), WakeAt: runstate.FirstDeadline(d.s)})
	return nil
}

// parkForAgents parks the run until a sub-agent in the background has ended. It gets another
// turn then.
func (d *decision) parkForAgents() error {
	if err := d.leaveReflection(); err != nil {
		return err
	}
	return d.pauseForAgents()
}

// parkStopping parks the run until everything below it has ended, after which it ends as decided.
func (d *decision) parkStopping(finish *harnessv1.Finish) error {
	d.s.Stopping = &harnessv1.Stopping{Finish: finish}
	return d.pauseForAgents()
}

// pauseForAgents parks the run outside its phase until something below it has ended.
func (d *decision) pauseForAgents() error {
	reason := tree.WaitReason(d.s, d.turn.GetTurnNumber())
	if d.s.GetPausedPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
		if err := d.pause(reason); err != nil {
			return err
		}
	}
	d.s.StopReason = reason
	d.park(&harnessv1.Parked{Reason: reason, WakeAt: runstate.FirstDeadline(d.s)})
	return nil
}

// parkForOutage parks the run until the provider may answer again, or until a client gives
// its key. The turn was not
// counted.
func (d *decision) parkForOutage() error {
	reason := &harnessv1.StopReason{
		Kind:    runstate.KindProviderUnavailable,
		Message: d.turn.GetError().GetMessage(),
		Details: &harnessv1.StopDetails{Turn: d.turn.GetTurnNumber()},
	}
	wait := max(d.s.GetConfig().GetModel().GetOutageRetry().AsDuration(), d.turn.GetError().GetRetryAfter().AsDuration())
	wake := d.in.GetNow().AsTime().Add(wait)
	if err := d.leaveFailedTurn(); err != nil {
		return err
	}
	if d.turn.GetError().GetKeyMissing() {
		return d.pauseAndPark(reason, nil)
	}
	return d.pauseAndPark(reason, &wake)
}

// leaveFailedTurn changes the phase for another try of a turn that is not counted.
func (d *decision) leaveFailedTurn() error {
	if d.s.GetPhase() != harnessv1.Phase_PHASE_REFLECTING {
		return nil
	}
	return d.Enter(harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN)
}

// parkForPoison parks the run because workers died at its step, until what killed them may be
// over. The turn was not counted. It reports whether the run is parked: it is not after the last
// park in a row.
func (d *decision) parkForPoison() (parked bool, err error) {
	reason, wake, ok := runstate.PoisonPark(d.s, d.turn.GetTurnNumber(), d.turn.GetError().GetMessage(), d.in.GetNow().AsTime())
	if !ok {
		return false, nil
	}
	if err := d.leaveFailedTurn(); err != nil {
		return false, err
	}
	return true, d.pauseAndPark(reason, &wake)
}

// parkForReview parks the run because a hook wants a review.
func (d *decision) parkForReview(why string) error {
	d.s.Hooks.Pause = "" // the park below fulfils it
	if d.turn.GetTurnNumber() > d.s.GetTurnCount() && d.s.GetPhase() == harnessv1.Phase_PHASE_REFLECTING {
		// The turn was stopped before it began, so no decision over it is taken again.
		if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN); err != nil {
			return err
		}
	}
	return d.pauseAndPark(&harnessv1.StopReason{
		Kind: runstate.KindReview, Message: why, Details: &harnessv1.StopDetails{Turn: d.turn.GetTurnNumber()},
	}, nil)
}

// parkForQuestions parks the run until the user has answered questions of the contract.
func (d *decision) parkForQuestions(ask []*harnessv1.UserQuestion) error {
	deadline := runstate.AnswerDeadline(d.s, runstate.KindQuestion, d.in.GetNow().AsTime())
	for _, q := range ask {
		arguments, err := json.Marshal(map[string]string{"question": q.GetQuestion()})
		if err != nil {
			return err
		}
		d.s.PendingToolCalls = append(d.s.PendingToolCalls, &harnessv1.PendingCall{
			CallId: runstate.ContractCallID(q.GetId(), d.in.GetVersion()), Tool: runstate.ContractQuestion, Arguments: content.Inline(string(arguments)),
			Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Kind: runstate.KindQuestion,
			Why: content.Cut(q.GetQuestion(), maxQuestion), TurnNumber: d.turn.GetTurnNumber(), Deadline: deadline,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
		})
	}
	wake := deadline.AsTime()
	return d.pauseAndPark(runstate.AwaitReason(d.s, d.turn.GetTurnNumber()), &wake)
}

// maxQuestion bounds the copy of a question in its pending call, in bytes. The arguments
// of the call hold the whole question.
const maxQuestion = 160

// pauseAndPark parks the run outside its phase. If it pauses in REFLECTING, for a review
// or a question, the stop decision over the same turn is taken again afterwards. wake is
// when the run continues without input; nil means never.
func (d *decision) pauseAndPark(reason *harnessv1.StopReason, wake *time.Time) error {
	if len(runstate.AwaitedCalls(d.s)) == 0 {
		if err := d.endBackground(); err != nil {
			return err
		}
	}
	if err := d.pause(reason); err != nil {
		return err
	}
	parked := &harnessv1.Parked{Reason: reason, Pending: runstate.AwaitedCalls(d.s)}
	if wake != nil {
		parked.WakeAt = timestamppb.New(*wake)
	}
	d.s.StopReason = reason
	d.park(parked)
	return nil
}

// pause leaves the phase of the run, to which a resume returns.
func (d *decision) pause(reason *harnessv1.StopReason) error {
	if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_PAUSE); err != nil {
		return err
	}
	d.Emit(event.SessionPause(reason))
	return d.notify(harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE, "pause", map[string]any{"kind": reason.GetKind(), "message": reason.GetMessage()})
}

func (d *decision) park(parked *harnessv1.Parked) {
	runstate.ParkClock(d.s, d.in.GetNow().AsTime())
	d.s.Status, d.s.ParkVersion = harnessv1.RunStatus_RUN_STATUS_PARKED, 0 // set by the commit
	d.s.WakeAt = parked.GetWakeAt()
	d.Step.To = runlog.Park
	d.Step.Message = &harnessv1.Step_Parked{Parked: parked}
}
