package repair

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// answerPending answers every call that still waits, or is approved, with an
// error.
func (d *decision) answerPending(text string) {
	for _, call := range append(runstate.AwaitedCalls(d.s), runstate.ApprovedCalls(d.s)...) {
		if call.GetKind() == runstate.KindAgent && call.GetClass() == harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL && d.cancel == nil {
			continue // its child is idle, and continues when the run does
		}
		runstate.RecordAnswer(d.s, call.GetCallId(), "")
		d.repairCall(call, text, "not answered")
	}
}

// answerUnknown answers the calls that were started and whose end is unknown.
func (d *decision) answerUnknown() {
	for _, call := range d.s.GetPendingToolCalls() {
		if call.GetClass() == harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN {
			d.repairCall(call, "The process that ran this call died while it ran. "+
				"Its effect is unknown: it may have happened wholly, in part or not at all, and it was not run again. "+
				"Look at the present state before you decide whether to repeat it.", "effect unknown")
		}
	}
}

// repairCall answers a call that gets no other answer.
func (d *decision) repairCall(call *harnessv1.PendingCall, text, reason string) {
	d.repairs++
	if question, ok := runstate.QuestionOf(call); ok {
		d.answerQuestion(call, question, nil)
		return
	}
	d.answerWithError(call, text, harnessv1.MessageKind_MESSAGE_KIND_REPAIR)
	d.Emit(event.Repaired(call.GetCallId(), call.GetTool(), call.GetTurnNumber(), reason))
}

// answerWithError appends an error as the call's result and removes the call
// from the pending ones.
func (d *decision) answerWithError(call *harnessv1.PendingCall, text string, kind harnessv1.MessageKind) {
	if runstate.Held(call) {
		d.released = append(d.released, runstate.KeyHeld+runstate.AnswerKey(call))
	}
	result := &harnessv1.Message{
		Role:       harnessv1.Role_ROLE_TOOL,
		Kind:       kind,
		Content:    content.Inline(call.GetChanges() + text),
		ToolCallId: call.GetCallId(),
		ToolName:   call.GetTool(),
		IsError:    true,
	}
	mark.Result(result, call.GetMarks(), text, nil)
	d.AppendTo(call.GetTurnNumber(), result)
	if call.GetClass() != harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN { // its turn has counted it
		quality.CountContent(d.s.GetQuality(), call.GetTool(), result.GetContent())
	}
	runstate.RemovePending(d.s, call.GetCallId())
}
