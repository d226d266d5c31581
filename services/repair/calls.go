package repair

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// resumeIfAnswered resumes a run that is parked only for answers, once it has
// all of them.
func (d *decision) resumeIfAnswered(cause string) {
	if d.s.GetPausedPhase() != unpaused && d.resumed == "" && len(runstate.AwaitedCalls(d.s)) == 0 && d.s.GetStopping() == nil && !d.stopped() {
		d.resumed = cause
	}
}

// modeAllows reports whether the present mode of work, which may have changed
// since the call was made, allows it.
func (d *decision) modeAllows(call *harnessv1.PendingCall) bool {
	return mode.Allows(runstate.Mode(d.s), d.made.Modes, &harnessv1.ToolSpec{
		Name: call.GetTool(), Origin: call.GetOrigin(),
		Annotations: &harnessv1.ToolAnnotations{Reads: call.GetReads(), Writes: call.GetWrites(), Explores: call.GetExplores()},
	})
}

// refuseBlocked refuses approved calls that the mode of work no longer allows.
func (d *decision) refuseBlocked() {
	for _, call := range runstate.ApprovedCalls(d.s) {
		if !d.modeAllows(call) {
			text := mode.BlockedText(runstate.Mode(d.s), call.GetTool())
			d.refuse(call, text, text)
		}
	}
}

// refuse answers a call with an error and denies it for reason.
func (d *decision) refuse(call *harnessv1.PendingCall, text, reason string) {
	d.answerWithError(call, text, harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED)
	d.recordOutcome(call, content.Inline(text))
	d.Emit(event.ToolDenied(call.GetCallId(), call.GetTool(), reason))
}

// recordOutcome counts an answer from outside for the detection of loops and
// stalls.
func (d *decision) recordOutcome(call *harnessv1.PendingCall, result *harnessv1.Content) {
	if call.GetKind() == runstate.KindWait && runstate.RecordWait(d.s, call.GetWait(), d.now) {
		return
	}
	d.outcomes.Record(d.s, runstate.Outcome{
		Tool: call.GetTool(), Arguments: call.GetArguments(), Result: result, Basis: runstate.BasisOf(call.GetTool(), call),
	})
}

// answerQuestion records the user's answer to a question of the contract. A nil
// answer leaves the question open, so that it is put again.
func (d *decision) answerQuestion(call *harnessv1.PendingCall, question string, answer *harnessv1.QuestionAnswer, files ...*harnessv1.Media) {
	asked := call.GetWhy()
	if c := d.made.Contract; c != nil {
		for _, q := range c.Proto().GetQuestions() {
			if q.GetId() == question {
				asked = q.GetQuestion()
			}
		}
	}
	if answer == nil {
		d.Append(runstate.GuidanceMessage("The user did not answer this question of the task: " + asked))
	} else {
		coverage := runstate.OwnCoverage(d.s)
		coverage.Answers = append(coverage.Answers, answer)
		d.questionAnswered = d.questionAnswered || !answer.GetDeclined()
		text := "The user was asked: " + asked + "\nThe next message is the answer."
		if answer.GetDeclined() {
			text = "The user was asked: " + asked + "\nThe user does not want to answer; the next message says why. Go on as well as you can without."
		}
		question := runstate.GuidanceMessage(text)
		question.Kept = d.Marks() // the answer means nothing without it
		d.Append(question,
			&harnessv1.Message{
				Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_ANSWER, Kept: true,
				Content: proto.CloneOf(answer.GetAnswer()), Parts: media.Parts(files),
			})
	}
	runstate.RemovePending(d.s, call.GetCallId())
	d.resumeIfAnswered("answer")
}

// answerExpired answers the calls whose deadline has passed. The timer proves
// that the deadline of the park has passed, even if the clock here is slow.
func (d *decision) answerExpired() {
	now := d.now
	if at := d.s.GetWakeAt(); at != nil && at.AsTime().After(now) {
		now = at.AsTime()
	}
	for _, call := range runstate.AwaitedCalls(d.s) {
		if call.GetKind() == runstate.KindWait || call.GetDeadline() == nil || call.GetDeadline().AsTime().After(now) {
			continue
		}
		if call.GetKind() == runstate.KindAgent && d.overdue(call) {
			continue
		}
		if d.closeHeld(call) {
			continue
		}
		runstate.RecordAnswer(d.s, call.GetCallId(), "")
		d.repairCall(call, expiredText(call), "expired")
	}
}

func find(calls []*harnessv1.PendingCall, id string) *harnessv1.PendingCall {
	for _, c := range calls {
		if c.GetCallId() == id {
			return c
		}
	}
	return nil
}
