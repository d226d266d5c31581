package repair

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// applyAnswer gives a call of a client's tool, or a question, its result.
func (d *decision) applyAnswer(a *harnessv1.ToolAnswer) (refusal string, err error) {
	call, refusal := input.RecheckAnswer(d.s, a)
	switch {
	case refusal != "":
		return refusal, nil
	case call.GetQuestion() != nil:
		return d.applyServerAnswer(call, a)
	}
	runstate.RecordAnswer(d.s, call.GetCallId(), d.item)
	result := proto.CloneOf(a.GetResult())
	if result == nil {
		result = content.Inline("")
	}
	if question, ok := runstate.QuestionOf(call); ok {
		d.answerQuestion(call, question, &harnessv1.QuestionAnswer{QuestionId: question, Answer: result, Declined: a.GetIsError()}, a.GetMedia()...)
		return "", nil
	}
	if err := d.answerFromOutside(call, result, a); err != nil {
		return "", err
	}
	d.resumeIfAnswered("answer")
	return "", nil
}

// answerFromOutside gives a call its result, after the hooks on_error and
// after_tool_call. answer is the text of a, for the call of a sub-agent with how that ended. A text of the hooks replaces its media too.
func (d *decision) answerFromOutside(call *harnessv1.PendingCall, answer *harnessv1.Content, a *harnessv1.ToolAnswer) error {
	arguments, text, failed := "", "", a.GetIsError()
	parts := media.Parts(a.GetMedia())
	if d.subscribed(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR) || d.subscribed(harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL) {
		var err error
		if arguments, err = d.text(call.GetArguments()); err != nil {
			return err
		}
		if text, err = d.text(answer); err != nil {
			return err
		}
	}
	payload := func() map[string]any {
		return agent.CallPayload(call.GetCallId(), call.GetTool(), arguments, text, failed)
	}
	var effects hook.Effects
	if failed {
		p := payload()
		p["error"] = p["result"]
		onError, err := d.fire(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, call.GetCallId(), call.GetTool(), p)
		if err != nil {
			return err
		}
		effects = onError
	}
	after, err := d.fire(harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, call.GetCallId(), call.GetTool(), payload())
	if err != nil {
		return err
	}
	if text, ok := after.Text("result"); ok {
		answer, parts = content.Inline(text), nil
	}
	if after.Abort != "" {
		d.fail(harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, after.Abort)
	}
	marked := content.Text(answer)
	if call.GetChanges() != "" {
		text, err := d.text(answer)
		if err != nil {
			return err
		}
		answer, marked = content.Inline(call.GetChanges()+text), text
	}
	result := &harnessv1.Message{
		Role: harnessv1.Role_ROLE_TOOL, Content: answer, ToolCallId: call.GetCallId(), ToolName: call.GetTool(), IsError: failed, Parts: parts,
	}
	mark.Result(result, call.GetMarks(), marked, nil)
	d.AppendTo(call.GetTurnNumber(), result)
	quality.CountContent(d.s.GetQuality(), call.GetTool(), result.GetContent())
	d.Emit(event.ToolEnded(call.GetCallId(), call.GetTool(), failed, nil))
	effects.Merge(after)
	d.record(effects)
	runstate.RemovePending(d.s, call.GetCallId())
	if call.GetKind() == runstate.KindAgent {
		answer = a.GetResult() // without what differs between equal answers
	}
	d.recordOutcome(call, answer)
	return nil
}
