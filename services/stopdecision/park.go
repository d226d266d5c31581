package stopdecision

import (
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// parkForAnswers lets the run rest until someone outside answers. A call that a
// hook wants reviewed is a pause; every other answer is a part of the turn.
func (d *deciding) parkForAnswers() error {
	reason := runstate.AwaitReason(d.s, d.turn.GetTurnNumber())
	if reason == nil {
		return errors.New("stopdecision: the turn waits for answers and no call is pending")
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

// parkForOutage lets the run rest until the provider may answer again. The turn
// was not counted.
func (d *deciding) parkForOutage() error {
	reason := &harnessv1.StopReason{
		Kind:    "provider_unavailable",
		Message: d.turn.GetError().GetMessage(),
		Details: &harnessv1.StopDetails{Turn: d.turn.GetTurnNumber()},
	}
	wake := d.in.GetNow().AsTime().Add(d.s.GetConfig().GetModel().GetOutageRetry().AsDuration())
	if d.s.GetPhase() == harnessv1.Phase_PHASE_REFLECTING {
		if err := runstate.ChangePhase(d.step, d.s, harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN); err != nil {
			return err
		}
	}
	return d.rest(reason, &wake)
}

// parkForReview lets the run rest because a hook wants somebody to look at it.
func (d *deciding) parkForReview(why string) error {
	d.s.Hooks.Pause = "" // somebody is going to look
	if d.turn.GetTurnNumber() > d.s.GetTurnCount() && d.s.GetPhase() == harnessv1.Phase_PHASE_REFLECTING {
		// The turn was held up before it began: there is nothing to decide on again.
		if err := runstate.ChangePhase(d.step, d.s, harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN); err != nil {
			return err
		}
	}
	return d.rest(&harnessv1.StopReason{
		Kind: runstate.KindReview, Message: why, Details: &harnessv1.StopDetails{Turn: d.turn.GetTurnNumber()},
	}, nil)
}

// parkForQuestions puts questions of the contract to the user.
func (d *deciding) parkForQuestions(ask []*harnessv1.UserQuestion) error {
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
	return d.rest(runstate.AwaitReason(d.s, d.turn.GetTurnNumber()), &wake)
}

// maxQuestion bounds what the state holds of a question beside the arguments, in
// bytes.
const maxQuestion = 160

// rest parks the run. One that rests while it reflects, for a review or a question, has
// its stop decision taken again afterwards, over the same turn. wake is when it goes on
// by itself.
func (d *deciding) rest(reason *harnessv1.StopReason, wake *time.Time) error {
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

// pause takes the run out of its phase, to come back to it.
func (d *deciding) pause(reason *harnessv1.StopReason) error {
	if err := runstate.ChangePhase(d.step, d.s, harnessv1.PhaseInput_PHASE_INPUT_PAUSE); err != nil {
		return err
	}
	d.emit(&harnessv1.Event{Event: &harnessv1.Event_SessionPause{SessionPause: &harnessv1.SessionPause{Reason: reason}}})
	return d.fire(harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE, "pause", map[string]any{"kind": reason.GetKind(), "message": reason.GetMessage()})
}

func (d *deciding) park(parked *harnessv1.Parked) {
	runstate.StopClock(d.s, d.in.GetNow().AsTime())
	d.s.Status, d.s.ParkVersion = harnessv1.RunStatus_RUN_STATUS_PARKED, 0 // set by the commit
	d.s.WakeAt = parked.GetWakeAt()
	d.step.To = runlog.Park
	d.step.Message = &harnessv1.Step_Parked{Parked: parked}
}
