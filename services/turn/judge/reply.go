package judge

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// answer replies to calls that need no tool host: those that are refused, and
// those of the harness's own tools. Calls that wait are announced.
func (j *Calls) answer(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall) *reply {
	id, name := call.GetId(), call.GetName()
	whole := prepared.GetMessage()
	prepared.Message = content.Cut(whole, content.MaxPreview) // the result has all of it
	announce := func() {
		j.draft.Emit(event.ToolCalled(id, name, call.GetArguments(), toolcall.Kind(prepared), prepared.GetSandboxLevel()))
	}
	switch by := toolcall.Request(prepared, call.GetArguments(), j.t.Number).(type) {
	case toolcall.Refusal:
		if by.Denied {
			j.draft.Emit(event.ToolDenied(id, name, prepared.GetMessage()))
			return j.respond(call, whole, true)
		}
		announce()
		j.draft.Emit(event.ToolError(id, name, nil))
		r := j.respond(call, whole, true)
		r.hooked = true
		return r
	case toolcall.Harness:
		announce()
		if by.Tool != nil && by.Tool.Messages != nil {
			j.reading = &readCall{call: call, request: by.Tool.Messages(by.Arguments)}
			return nil
		}
		prepared.Completion = harnesstool.CompletionOf(harnesstool.CanonicalName(name), by.Arguments, j.t.Definition.Output)
		text, failed := j.runHarness(name, by)
		j.draft.Emit(event.ToolEnded(id, name, failed, nil))
		r := j.respond(call, text, failed)
		r.hooked, r.ran = true, true
		return r
	case toolcall.PendingCall:
		announce()
	}
	prepared.Marks = j.marks(call)
	return nil
}

// marks returns the marks of the result of a call as it is carried out.
func (j *Calls) marks(call *harnessv1.ToolCall) *harnessv1.ResultMarks {
	name := harnesstool.CanonicalName(call.GetName())
	_, spec := j.t.present().Reach(name, call.GetByCallTool())
	m := mark.OfCall(j.t.Snapshot.GetConfig(), name, spec, call.GetArguments().GetInline())
	if t := harnesstool.Of(spec); m != nil && t != nil && t.Summary != nil {
		m.KeptContent = harnessv1.KeptContent_KEPT_CONTENT_COMPLETION
	}
	return m
}

// respond appends the harness's own answer to a call.
func (j *Calls) respond(call *harnessv1.ToolCall, text string, failed bool) *reply {
	m, marks := toolcall.Result(call.GetId(), call.GetName(), text, failed), j.marks(call)
	mark.Result(m, marks, text, nil)
	j.draft.Append(m)
	return &reply{text: text, failed: failed, arguments: call.GetArguments().GetInline(), message: m, marks: marks}
}

// runHarness runs one of the harness's own tools, with the name that the model wrote.
func (j *Calls) runHarness(name string, by toolcall.Harness) (text string, failed bool) {
	t := by.Tool
	if t != nil && t.Search {
		return j.t.present().Find(j.t.Snapshot, by.Arguments), false
	}
	if t == nil || t.Run == nil {
		return fmt.Sprintf("There is no tool %q.", content.Cut(name, 64)), true
	}
	o := t.Run(j.ledger, by.Arguments)
	j.items, j.artifacts = workitem.Merge(j.items, o.Changed), append(j.artifacts, o.Saved...)
	j.draft.Emit(o.Events...)
	return o.Result, o.IsError
}

// read answers the call that has read messages.
func (j *Calls) read(result readback.Result) {
	call := j.reading.call
	j.reading = nil
	j.draft.Emit(event.ToolEnded(call.GetId(), call.GetName(), result.Failed, nil))
	j.reply = j.respond(call, result.Text, result.Failed)
	j.reply.hooked, j.reply.ran = true, true
	j.reply.message.Parts = media.Parts(result.Media)
}

// ReadsMessages reports whether a call is carried out by reading messages of the run.
func ReadsMessages(c *harnessv1.PreparedCall) bool {
	t := harnesstool.Find(c.GetTool())
	return c.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS && t != nil && t.Messages != nil
}
