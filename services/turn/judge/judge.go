// Package judge decides what becomes of the calls of a response: which tool host, client, sub-agent
// or person gets each, which the harness answers, and which are refused.
//
// Calls are judged one after another. Prepare decides by the tools, the policy and the sandbox of
// the run; subscribers are called before a call is decided, and after one that needs no tool host.
// Without subscribers and calls that read messages the result is a function of the turn and the
// response. Otherwise Start judges until Fires or Reads names an observation that is needed, and
// Resume or Read continues with it. Once neither does, Draft is the record to store.
//
// Whatever the model wrote is data: a call that cannot be carried out is refused with a text for the
// model, and nothing here fails.
package judge

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/services/turn/hookpoint"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// Start judges calls whose response is stored, with their arguments inline.
func Start(t Turn, d *runstate.Draft, calls []*harnessv1.ToolCall) *Calls {
	j := New(t, d)
	j.queue = calls
	j.advance()
	return j
}

// Draft returns the record of the calls that Start judges.
func (j *Calls) Draft() *runstate.Draft { return j.draft }

// Results returns what became of the calls, and the work items and artifacts that they have changed.
func (j *Calls) Results() ([]*harnessv1.PreparedCall, []*harnessv1.WorkItem, []*harnessv1.Artifact) {
	return j.calls, j.items, j.artifacts
}

// Decide decides what becomes of a prepared call that has no subscribers.
func (j *Calls) Decide(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall) {
	j.decide(call, prepared, hook.Effects{})
}

// advance judges calls until messages are to be read or subscribers called, or all are
// judged.
func (j *Calls) advance() {
	for j.firing = nil; j.next < len(j.queue); j.take(hook.Effects{}) {
		if j.reading != nil {
			return
		}
		if j.firing = j.fire(j.queue[j.next]); j.firing != nil {
			return
		}
	}
	j.draft.GuideNotes(j.notes)
	j.draft.Entry = &harnessv1.Journal{Entry: &harnessv1.Journal_CallsJudged{CallsJudged: &harnessv1.CallsJudged{
		Calls: j.calls, WorkItems: j.items, Hooks: j.wants.Wants(), Artifacts: j.artifacts,
	}}}
}

// Fires returns the point at which subscribers are to be called; nil if none is.
func (j *Calls) Fires() *hook.Point { return j.firing }

// Resume continues with the effects of the subscribers that Fires names.
func (j *Calls) Resume(e hook.Effects) {
	j.take(e)
	j.advance()
}

// Reads returns the request of the call that reads messages; nil if none does.
func (j *Calls) Reads() *readback.Request {
	if j.reading == nil {
		return nil
	}
	return &j.reading.request
}

// Read continues with the result of the call that Reads names.
func (j *Calls) Read(result readback.Result) {
	j.read(result)
	j.advance()
}

// fire returns the point of a call at which subscribers are called; nil if it has no subscribers.
func (j *Calls) fire(call *harnessv1.ToolCall) *hook.Point {
	id, tool := call.GetId(), harnesstool.CanonicalName(call.GetName())
	fire := func(topic harnessv1.HookTopic, arguments, result string, failed bool) *hook.Point {
		if !hookpoint.Subscribed(j.t.Snapshot, j.t.Definition, topic) {
			return nil
		}
		payload := agent.CallPayload(id, tool, arguments, result, failed)
		if topic == hookpoint.OnError {
			payload["error"] = result
		}
		p := hookpoint.New(j.t.Snapshot, j.t.Number, topic, id, tool, payload)
		// A hook that fails must not keep the agent from ending its work.
		p.FailsOpen = topic == hookpoint.BeforeCall && EndsWork(tool)
		return &p
	}
	switch {
	case j.point == pointBefore:
		if j.prepared = j.Prepare(call); toolcall.Accepted(j.prepared) {
			return fire(hookpoint.BeforeCall, call.GetArguments().GetInline(), "", false)
		}
	case j.reply == nil || !j.reply.hooked:
	case j.point == pointAfter && !j.reply.ran:
	case j.point == pointAfter:
		return fire(hookpoint.AfterCall, j.reply.arguments, j.reply.text, j.reply.failed)
	case j.reply.failed:
		return fire(hookpoint.OnError, j.reply.arguments, j.reply.text, true)
	}
	return nil
}

// take applies the effects of the subscribers of a point of a call.
func (j *Calls) take(e hook.Effects) {
	switch j.point {
	case pointBefore:
		j.apply(hook.Effects{Events: e.Events, Notes: e.Notes, Skip: e.Skip, Replan: e.Replan, FailedCall: e.FailedCall})
		j.reply = j.decide(j.queue[j.next], j.prepared, e)
		j.point = pointFailed
	case pointFailed:
		j.failed, j.point = e, pointAfter
	case pointAfter:
		if text, ok := e.Text("result"); ok && j.reply != nil {
			j.reply.message.Content, j.reply.message.Parts = content.Inline(text), nil
			mark.Result(j.reply.message, j.reply.marks, text, nil)
		}
		j.apply(j.failed)
		j.apply(e)
		j.next, j.point, j.failed = j.next+1, pointBefore, hook.Effects{}
	}
}

// apply adds what subscribers said: their events and notes, and their reasons.
func (j *Calls) apply(e hook.Effects) {
	j.draft.Emit(e.Events...)
	j.notes = append(j.notes, e.Notes...)
	j.wants.Merge(hook.Effects{Abort: e.Abort, Pause: e.Pause, Skip: e.Skip, Replan: e.Replan, FailedCall: e.FailedCall})
}

// decide decides what becomes of a call after its subscribers. It returns the
// reply to a call that needs no tool host, nil for one that is carried out later.
func (j *Calls) decide(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall, before hook.Effects) *reply {
	call, prepared = j.replace(call, prepared, before)
	harness := prepared.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS
	refuse := func(as harnessv1.CallDisposition, message string) {
		prepared.Disposition, prepared.Message = as, message
	}
	switch {
	case !toolcall.Accepted(prepared):
	case before.Refused:
		refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+cmp.Or(before.Reason, "a rule of this installation refuses it."))
	case before.Abort != "":
		refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, "This call was broken off before it ran: "+before.Abort)
	case before.Pause != "" && harness: // it has no effect outside: the run parks after the turn
		j.wants.Merge(hook.Effects{Pause: before.Pause})
	case before.Pause != "" && prepared.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_ASK: // the approval is the review
		prepared.Message = before.Pause + " (" + prepared.GetMessage() + ")"
	case before.Pause != "":
		prepared.Review = true
		refuse(harnessv1.CallDisposition_CALL_DISPOSITION_ASK, before.Pause)
	}
	if toolcall.Kind(prepared) != "" {
		if j.waiting++; j.waiting > runstate.MaxPending {
			prepared.Review = false
			refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, fmt.Sprintf("At most %d calls can wait at once; this one was not taken.", runstate.MaxPending))
		}
	}
	j.calls = append(j.calls, prepared)
	return j.answer(call, prepared)
}

// replace returns the call with the arguments that a hook has replaced, decided
// again.
func (j *Calls) replace(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall, before hook.Effects) (*harnessv1.ToolCall, *harnessv1.PreparedCall) {
	if before.Replaced["arguments"] == nil {
		return call, prepared
	}
	raw, err := hook.Encode(before.Replaced["arguments"])
	if err != nil {
		return call, prepared
	}
	call = proto.CloneOf(call)
	call.Arguments = content.Inline(raw)
	prepared = j.Prepare(call)
	prepared.Arguments = content.Inline(raw)
	return call, prepared
}
