package turn

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// judgement decides what becomes of the calls of a response, one after another.
// Without subscribers and calls that read messages it is a function of the state and the
// response. Subscribers are called before a call is decided, and after one that needs no tool
// host.
type judgement struct {
	s     *State
	p     *Progress
	draft *runstate.Draft

	ledger  *harnessv1.WorkItemLedger
	waiting int // calls that wait for an answer
	// delegated is the number of children that the calls of the response make.
	delegated int
	calls     []*harnessv1.PreparedCall
	items     []*harnessv1.WorkItem
	artifacts []*harnessv1.Artifact

	// The rest is for calls that are judged after the response is stored.
	queue    []*harnessv1.ToolCall // with their arguments inline
	next     int                   // in queue
	point    point                 // of that call
	prepared *harnessv1.PreparedCall
	reading  *readCall // nil unless the call is reading messages
	reply    *reply
	failed   hook.Effects // of on_error
	notes    []hook.Note
	wants    hook.Effects // their reasons only
	firing   *FireHooks   // nil when all calls are judged
}

// point is where in a call subscribers are called.
type point int

const (
	pointBefore point = iota // before_tool_call
	pointFailed              // on_error
	pointAfter               // after_tool_call
)

// reply is the harness's own answer to a call.
type reply struct {
	text      string
	failed    bool
	hooked    bool   // on_error is fired: the call was not denied
	ran       bool   // after_tool_call is fired
	arguments string // that the call was carried out with
	message   *harnessv1.Message
	marks     *harnessv1.ResultMarks
}

func newJudgement(s *State, p *Progress, d *runstate.Draft) *judgement {
	j := &judgement{s: s, p: p, draft: d, waiting: len(s.Snapshot.GetPendingToolCalls())}
	if s.Snapshot.GetConfig().GetWorkItems().GetEnabled() || len(s.Definition.ArtifactKinds(s.Snapshot)) > 0 {
		j.ledger = proto.CloneOf(s.Snapshot.GetWorkItemLedger())
		if j.ledger == nil {
			j.ledger = &harnessv1.WorkItemLedger{}
		}
	}
	return j
}

// startJudgement starts to judge the calls of the response, once their arguments are
// known.
func (p *Progress) startJudgement(s *State) {
	if !p.Unjudged() || p.execution.judgement != nil || !p.execution.modeRead {
		return
	}
	var queue []*harnessv1.ToolCall
	for _, call := range p.Message.GetToolCalls() {
		text, known := p.text(call.GetId(), call.GetArguments())
		if !known {
			return
		}
		call = proto.CloneOf(call)
		call.Arguments = content.Inline(text)
		queue = append(queue, call)
	}
	j := newJudgement(s, p, p.entry(s, nil))
	j.queue = queue
	p.execution.judgement = j
	j.advance()
}

// text returns the arguments of a call; known is false if they are stored as a
// blob that has not been read.
func (p *Progress) text(id string, arguments *harnessv1.Content) (text string, known bool) {
	if arguments.GetBlob() == nil {
		return arguments.GetInline(), true
	}
	text, known = p.execution.texts[id]
	return text, known
}

// decideCalls calls the subscribers of the calls and reads the messages that the calls ask
// for, in order, and stores what becomes of the calls.
func (p *Progress) decideCalls(*State) Action {
	j := p.execution.judgement
	switch {
	case !p.execution.modeRead:
		return CheckInbox{Newest: true}
	case j == nil:
		unread := map[string]*harnessv1.Content{}
		for _, call := range p.Message.GetToolCalls() {
			if call.GetArguments().GetBlob() != nil {
				unread[call.GetId()] = call.GetArguments()
			}
		}
		return ReadArguments{Arguments: unread}
	case j.reading != nil:
		return p.readMessages(j.reading.request)
	case j.firing != nil:
		return *j.firing
	}
	return Append{Draft: j.draft, Before: "weighed", After: "judged"}
}

// advance judges calls until messages are to be read or subscribers called, or all are
// judged.
func (j *judgement) advance() {
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

// resume continues with the effects of the subscribers of the firing.
func (j *judgement) resume(e hook.Effects) {
	j.take(e)
	j.advance()
}

// fire returns the firing of the point of a call; nil if it has no subscribers.
func (j *judgement) fire(call *harnessv1.ToolCall) *FireHooks {
	id, tool := call.GetId(), harnesstool.CanonicalName(call.GetName())
	fire := func(topic harnessv1.HookTopic, arguments, result string, failed bool) *FireHooks {
		if !j.s.hooked(topic) {
			return nil
		}
		payload := agent.CallPayload(id, tool, arguments, result, failed)
		if topic == onError {
			payload["error"] = result
		}
		f := j.s.fire(j.p, topic, id, tool, payload)
		// A hook that fails must not keep the agent from ending its work.
		f.Point.FailsOpen = topic == beforeCall && endsWork(tool)
		return &f
	}
	switch {
	case j.point == pointBefore:
		if j.prepared = j.prepare(call); hookable(j.prepared) {
			return fire(beforeCall, call.GetArguments().GetInline(), "", false)
		}
	case j.reply == nil || !j.reply.hooked:
	case j.point == pointAfter && !j.reply.ran:
	case j.point == pointAfter:
		return fire(afterCall, j.reply.arguments, j.reply.text, j.reply.failed)
	case j.reply.failed:
		return fire(onError, j.reply.arguments, j.reply.text, true)
	}
	return nil
}

// take applies the effects of the subscribers of a point of a call.
func (j *judgement) take(e hook.Effects) {
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
func (j *judgement) apply(e hook.Effects) {
	j.draft.Emit(e.Events...)
	j.notes = append(j.notes, e.Notes...)
	j.wants.Merge(hook.Effects{Abort: e.Abort, Pause: e.Pause, Skip: e.Skip, Replan: e.Replan, FailedCall: e.FailedCall})
}

// hookable reports whether before_tool_call is fired for a call: it would be carried
// out.
func hookable(c *harnessv1.PreparedCall) bool {
	d := c.GetDisposition()
	return d != harnessv1.CallDisposition_CALL_DISPOSITION_INVALID && d != harnessv1.CallDisposition_CALL_DISPOSITION_DENIED
}

// decide decides what becomes of a call after its subscribers. It returns the
// reply to a call that needs no tool host, nil for one that is carried out later.
func (j *judgement) decide(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall, before hook.Effects) *reply {
	call, prepared = j.replace(call, prepared, before)
	harness := prepared.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS
	refuse := func(as harnessv1.CallDisposition, message string) {
		prepared.Disposition, prepared.Message = as, message
	}
	switch {
	case !hookable(prepared):
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
	if kindOf(prepared) != "" {
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
func (j *judgement) replace(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall, before hook.Effects) (*harnessv1.ToolCall, *harnessv1.PreparedCall) {
	if before.Replaced["arguments"] == nil {
		return call, prepared
	}
	raw, err := hook.Encode(before.Replaced["arguments"])
	if err != nil {
		return call, prepared
	}
	call = proto.CloneOf(call)
	call.Arguments = content.Inline(raw)
	prepared = j.prepare(call)
	prepared.Arguments = content.Inline(raw)
	return call, prepared
}

// answer replies to calls that need no tool host: those that are refused, and
// those of the harness's own tools. Calls that wait are announced.
func (j *judgement) answer(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall) *reply {
	id, name := call.GetId(), call.GetName()
	whole := prepared.GetMessage()
	prepared.Message = content.Cut(whole, content.MaxPreview) // the result has all of it
	announce := func() {
		j.draft.Emit(event.ToolCalled(id, name, call.GetArguments(), kindOf(prepared), prepared.GetSandboxLevel()))
	}
	switch prepared.GetDisposition() {
	case harnessv1.CallDisposition_CALL_DISPOSITION_DENIED:
		j.draft.Emit(event.ToolDenied(id, name, prepared.GetMessage()))
		return j.respond(call, whole, true)
	case harnessv1.CallDisposition_CALL_DISPOSITION_INVALID:
		announce()
		j.draft.Emit(event.ToolError(id, name, nil))
		r := j.respond(call, whole, true)
		r.hooked = true
		return r
	case harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS:
		announce()
		if t := harnesstool.Find(name); t != nil && t.Messages != nil {
			j.reading = &readCall{call: call, request: t.Messages(call.GetArguments().GetInline())}
			return nil
		}
		prepared.Completion = harnesstool.CompletionOf(harnesstool.CanonicalName(name), call.GetArguments().GetInline(), j.s.Definition.Output)
		text, failed := j.runHarnessTool(name, call.GetArguments().GetInline())
		j.draft.Emit(event.ToolEnded(id, name, failed, nil))
		r := j.respond(call, text, failed)
		r.hooked, r.ran = true, true
		return r
	default: // the call waits, or a tool host runs it
	}
	prepared.Marks = j.marks(call)
	if kindOf(prepared) != "" {
		announce()
	}
	return nil
}

// marks returns the marks of the result of a call as it is carried out.
func (j *judgement) marks(call *harnessv1.ToolCall) *harnessv1.ResultMarks {
	name := harnesstool.CanonicalName(call.GetName())
	_, spec := j.p.offer(j.s).Reach(name, call.GetByCallTool())
	m := mark.OfCall(j.s.Snapshot.GetConfig(), name, spec, call.GetArguments().GetInline())
	if t := harnesstool.Of(spec); m != nil && t != nil && t.Summary != nil {
		m.KeptContent = harnessv1.KeptContent_KEPT_CONTENT_COMPLETION
	}
	return m
}

// respond appends the harness's own answer to a call.
func (j *judgement) respond(call *harnessv1.ToolCall, text string, failed bool) *reply {
	m, marks := resultMessage(call.GetId(), call.GetName(), text, failed), j.marks(call)
	mark.Result(m, marks, text, nil)
	j.draft.Append(m)
	return &reply{text: text, failed: failed, arguments: call.GetArguments().GetInline(), message: m, marks: marks}
}

// runHarnessTool runs one of the harness's own tools.
func (j *judgement) runHarnessTool(name, arguments string) (text string, failed bool) {
	t := harnesstool.Find(name)
	if t != nil && t.Search {
		return j.p.offer(j.s).Find(j.s.Snapshot, arguments), false
	}
	if t == nil || t.Run == nil {
		return fmt.Sprintf("There is no tool %q.", content.Cut(name, 64)), true
	}
	o := t.Run(j.ledger, arguments)
	j.items, j.artifacts = workitem.Merge(j.items, o.Changed), append(j.artifacts, o.Saved...)
	j.draft.Emit(o.Events...)
	return o.Result, o.IsError
}

// endsWork reports whether a call of a tool ends the work.
func endsWork(tool string) bool {
	t := harnesstool.Find(tool)
	return t != nil && t.Summary != nil
}

// kindOf returns what a call waits for; empty if it does not wait.
func kindOf(c *harnessv1.PreparedCall) string {
	if c.GetReview() {
		return runstate.KindReview
	}
	return runstate.PendingKind(c.GetDisposition())
}

// prepare decides what becomes of a call before its subscribers are called.
func (j *judgement) prepare(call *harnessv1.ToolCall) *harnessv1.PreparedCall {
	tools := j.p.offer(j.s)
	name := harnesstool.CanonicalName(call.GetName())
	prepared := &harnessv1.PreparedCall{CallId: call.GetId(), Tool: call.GetName()}
	refuse := func(as harnessv1.CallDisposition, message string) *harnessv1.PreparedCall {
		prepared.Disposition, prepared.Message = as, message
		return prepared
	}
	set, spec := tools.Reach(name, call.GetByCallTool())
	if spec == nil {
		if tools.Blocked[name] {
			return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, mode.BlockedText(j.p.mode(j.s), name))
		}
		message := fmt.Sprintf("There is no tool %q.", content.Cut(name, 64))
		if near := tools.Near(name); len(near) > 0 {
			message += " Did you mean " + strings.Join(near, " or ") + "?"
		} else {
			message += " Use one of the tools that you are offered."
		}
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, message)
	}
	prepared.Offered = true
	if err := set.Validate(name, call.GetArguments().GetInline()); err != nil {
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, err.Error())
	}
	a := spec.GetAnnotations()
	prepared.Origin = spec.GetOrigin()
	prepared.Reads, prepared.Writes, prepared.Explores = a.GetReads(), a.GetWrites(), a.GetExplores()
	switch t := harnesstool.Of(spec); {
	case t == nil:
	case t.Question != nil:
		prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_QUESTION
		prepared.Message = t.Question(call.GetArguments().GetInline())
		return prepared
	case t.Wait != nil:
		j.prepareWait(prepared, t, spec, call.GetArguments().GetInline())
		return prepared
	case t.Unrestricted:
		prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS
		return prepared
	}
	prepared.ParallelSafe, prepared.Idempotent = a.GetParallelSafe(), a.GetIdempotent()
	allowed := harnessv1.CallDisposition_CALL_DISPOSITION_RUN
	switch spec.GetOrigin() {
	case harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT:
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT
	case harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT:
		if refusal := j.prepareDelegation(prepared, name, call.GetArguments().GetInline()); refusal != "" {
			return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, refusal)
		}
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_AGENT
	case harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS
	default: // a tool host runs it
	}
	command, err := j.command(spec, call.GetArguments().GetInline())
	if err != nil {
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+err.Error())
	}
	prepared.SandboxLevel, prepared.SandboxHosts = command.level, command.hosts
	guarded := guardedPlace(spec, call.GetArguments().GetInline())
	prepared.Guarded = guarded != ""
	outsideWhy, each := outside(j.s.Offer.Web, spec, call.GetArguments().GetInline())
	decision, why := j.s.Definition.Policy.Decide(spec, call.GetArguments().GetInline(), policy.Exemptions{
		Granted: j.s.Snapshot.GetGrantedTools(), Rules: j.s.Snapshot.GetGrants(), Workspace: j.s.Snapshot.GetWorkspace(),
		Yolo: j.s.Snapshot.GetConfig().GetTools().GetYolo(), Confined: command.confined, Guarded: guarded, Outside: outsideWhy, Each: each,
	})
	switch changed := tools.Servers.Lookup(name).GetChange(); {
	case decision == harnessv1.ToolDecision_TOOL_DECISION_DENY:
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+why)
	case changed != nil && j.s.Snapshot.GetAutonomous():
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: the server has changed the definition of this tool, and no person is there to approve it. Do without it.")
	case changed != nil: // neither a rule nor a grant was made for this definition
		prepared.Disposition, prepared.OnlyOnce = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, true
		prepared.Message = "the server has changed the definition of this tool since it was approved:\n" + changed.GetDifference()
	case command.ask != "":
		prepared.Disposition, prepared.Message, prepared.OnlyOnce = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, command.ask, true
	case decision == harnessv1.ToolDecision_TOOL_DECISION_ASK && allowed != harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS:
		prepared.Disposition, prepared.Message, prepared.OnlyOnce = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, why, each
	default:
		prepared.Disposition = allowed
	}
	return prepared
}

// prepareDelegation reads what a call wants of sub-agents. refusal is why it gets nothing; empty if
// it does.
func (j *judgement) prepareDelegation(prepared *harnessv1.PreparedCall, name, arguments string) (refusal string) {
	d, err := tree.Request(j.s.Snapshot, j.s.Definition.Agents, name, arguments)
	if err != nil {
		return err.Error()
	}
	more := tree.Needs(name, d)
	if left := tree.Room(j.s.Snapshot) - j.delegated; more > left {
		return fmt.Sprintf("The call needs %d sub-agents, and until the next message of the user this run may start %d more. "+
			"Do the rest yourself, or continue one that has ended.", more, max(0, left))
	}
	j.delegated += more
	prepared.Delegation = d
	return ""
}
