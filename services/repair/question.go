package repair

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

// applyServerAnswer answers the question of a call's server. The call then continues with the rest of
// the turn, as an approved one does.
func (d *decision) applyServerAnswer(call *harnessv1.PendingCall, a *harnessv1.ToolAnswer) (refusal string, err error) {
	whole := proto.CloneOf(call.GetQuestion())
	for _, r := range whole.GetRequests() {
		if r.Schema == nil {
			continue
		}
		form, err := d.text(r.GetSchema())
		if err != nil {
			return "", err
		}
		r.Schema.Value = &harnessv1.Content_Inline{Inline: form}
	}
	text, err := d.text(a.GetResult())
	if err != nil {
		return "", err
	}
	responses, err := input.Responses(whole, a, text)
	if err != nil {
		return err.Error(), nil
	}
	for _, key := range []string{runstate.AnswerKey(call), call.GetCallId()} {
		runstate.RecordAnswer(d.s, key, d.item)
	}
	d.Emit(event.ToolAnswered(call, elicit.Action(a), d.caller))
	call.Class, call.Question.Responses = harnessv1.PendingClass_PENDING_CLASS_APPROVED, responses
	d.resumeIfAnswered("answer")
	return "", nil
}

// closeHeld closes the question of a call that its tool host holds, at its deadline, and reports
// whether it is one. The call continues, because its server waits for the end of the question.
func (d *decision) closeHeld(call *harnessv1.PendingCall) bool {
	if !runstate.Held(call) {
		return false
	}
	for _, key := range []string{runstate.AnswerKey(call), call.GetCallId()} {
		runstate.RecordAnswer(d.s, key, "")
	}
	call.Class = harnessv1.PendingClass_PENDING_CLASS_APPROVED
	call.Question.Responses = elicit.All(call.GetQuestion(), harnessv1.AnswerAction_ANSWER_ACTION_CANCEL)
	d.Emit(event.ToolAnswered(call, harnessv1.AnswerAction_ANSWER_ACTION_CANCEL, ""))
	d.resumeIfAnswered("expiry")
	return true
}

// endHeld has the calls cancelled that tool hosts held for answers which no longer come.
func (d *decision) endHeld() error {
	needs := &agent.NeedsError{}
	for _, key := range d.released {
		if agent.Observation(d.in, key) == nil {
			needs.Keys = append(needs.Keys, key)
		}
	}
	if len(needs.Keys) > 0 {
		return needs
	}
	return nil
}

// dropHeld answers the calls that tool hosts hold with an error, and has them cancelled.
func (d *decision) dropHeld(text string) error {
	for _, call := range append(runstate.AwaitedCalls(d.s), runstate.ApprovedCalls(d.s)...) {
		if runstate.Held(call) {
			runstate.RecordAnswer(d.s, call.GetCallId(), "")
			d.repairCall(call, text, "not answered")
		}
	}
	return d.endHeld()
}

// dropOrphans drops the held calls of a turn that was stopped. No part of a turn follows in which
// they could continue.
func (d *decision) dropOrphans() error {
	if d.s.GetTurn().GetOpen() {
		return nil
	}
	return d.dropHeld("The turn was stopped before the question of this call's server was answered. What the call had done until then stays.")
}

// expiredText returns the result of a call that had no answer at its deadline.
func expiredText(call *harnessv1.PendingCall) string {
	switch {
	case input.NeedsApproval(call):
		return "Nobody approved this call in time, so it did not run."
	case call.GetQuestion() != nil:
		return "The user did not answer the question of this call's server in time, so the call was given up. What it had done until then stays."
	case call.GetKind() == runstate.KindQuestion:
		return "The user did not answer this question in time. Go on as well as you can without the answer."
	}
	return "Nobody answered this call in time."
}
