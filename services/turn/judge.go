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
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Judging decides what becomes of the calls of a response, one after the other.
// Where nobody subscribes it is a function of state and response; subscribers speak
// before a call is decided (Judge) and after one that needs no tool (After).
type Judging struct {
	s    *harnessv1.Snapshot
	p    *Progress
	made *agent.Definition
	in   Surroundings

	ledger  *harnessv1.WorkItemLedger
	waiting int

	calls    []*harnessv1.PreparedCall
	appended []*harnessv1.Message
	events   []*harnessv1.Event
	notes    []hook.Note
	wants    *harnessv1.HookState
	items    []*harnessv1.WorkItem
}

// Settled is a call that was answered at once.
type Settled struct {
	// Result is what the model reads; Failed says that it is an error.
	Result string
	Failed bool
	// Ran says that subscribers of after_tool_call hear of it: it was not denied.
	Ran bool
	// Arguments that it was carried out with.
	Arguments string

	message *harnessv1.Message
}

// NewJudging begins to judge the calls of a response.
func NewJudging(s *harnessv1.Snapshot, p *Progress, in Surroundings) *Judging {
	j := &Judging{s: s, p: p, made: in.Made, in: in, waiting: len(s.GetPendingToolCalls())}
	if s.GetConfig().GetWorkItems().GetEnabled() {
		j.ledger = proto.CloneOf(s.GetWorkItemLedger())
		if j.ledger == nil {
			j.ledger = &harnessv1.WorkItemLedger{}
		}
	}
	return j
}

// Prepare decides on a call as far as nobody has to be asked.
func (j *Judging) Prepare(call *harnessv1.ToolCall) *harnessv1.PreparedCall {
	return prepare(j.s, call, j.in)
}

// Hookable says whether subscribers of before_tool_call are asked about a call: it
// would be carried out.
func Hookable(c *harnessv1.PreparedCall) bool {
	switch c.GetDisposition() {
	case harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, harnessv1.CallDisposition_CALL_DISPOSITION_DENIED:
		return false
	}
	return true
}

// Judge decides on a call, after its subscribers. What needs no tool is answered;
// nil says that it is carried out later.
func (j *Judging) Judge(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall, before hook.Result) *Settled {
	j.hear(before)
	if before.Replaced {
		call, prepared = j.replace(call, prepared, before.Payload)
	}
	own := prepared.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS
	refuse := func(as harnessv1.CallDisposition, message string) {
		prepared.Disposition, prepared.Message = as, message
	}
	switch {
	case !Hookable(prepared):
	case before.Action == harnessv1.HookAction_HOOK_ACTION_DENY:
		refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+cmp.Or(before.Reason, "a rule of this installation refuses it."))
	case before.Action == harnessv1.HookAction_HOOK_ACTION_ABORT:
		refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, "This call was broken off before it ran: "+agent.Aborted(before))
	case before.Pause != "" && own:
		j.want(&harnessv1.HookState{Pause: before.Pause}) // it has no effect outside: the run rests after the turn
	case before.Pause != "" && prepared.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_ASK:
		prepared.Message = before.Pause + " (" + prepared.GetMessage() + ")" // who approves it reviews it
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
	return j.settle(call, prepared)
}

// replace puts a hook's arguments in the place of the model's and decides anew.
func (j *Judging) replace(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall, payload map[string]any) (*harnessv1.ToolCall, *harnessv1.PreparedCall) {
	raw, err := hook.Encode(payload["arguments"])
	if err != nil || payload["arguments"] == nil {
		return call, prepared
	}
	call = proto.CloneOf(call)
	call.Arguments = content.Inline(raw)
	prepared = j.Prepare(call)
	prepared.Arguments = content.Inline(raw)
	return call, prepared
}

// settle answers at once what needs no tool: refused calls and the harness's own.
func (j *Judging) settle(call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall) *Settled {
	id, name := call.GetId(), call.GetName()
	whole := prepared.GetMessage()
	prepared.Message = content.Cut(whole, content.MaxPreview) // whole in the result
	answer := func(text string, failed, ran bool, events ...*harnessv1.Event) *Settled {
		m := result(j.p.Number, id, name, text, failed)
		j.appended = append(j.appended, m)
		j.events = append(j.events, events...)
		return &Settled{Result: text, Failed: failed, Ran: ran, Arguments: call.GetArguments().GetInline(), message: m}
	}
	switch prepared.GetDisposition() {
	case harnessv1.CallDisposition_CALL_DISPOSITION_DENIED:
		return answer(whole, true, false, event(j.s, j.p, &harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{
			CallId: id, Tool: name, Reason: prepared.GetMessage(),
		}}}))
	case harnessv1.CallDisposition_CALL_DISPOSITION_INVALID:
		return answer(whole, true, true, called(j.s, j.p, id, name, call.GetArguments()), ended(j.s, j.p, id, name, true, nil))
	case harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS:
		if !workitem.IsTool(name) {
			return answer(duplicateComplete, false, true, called(j.s, j.p, id, name, call.GetArguments()), ended(j.s, j.p, id, name, false, nil))
		}
		o := workitem.Apply(j.ledger, name, call.GetArguments().GetInline())
		j.items = merged(j.items, o.Changed)
		events := []*harnessv1.Event{called(j.s, j.p, id, name, call.GetArguments())}
		for _, e := range o.Events {
			events = append(events, event(j.s, j.p, e))
		}
		return answer(o.Result, o.IsError, true, append(events, ended(j.s, j.p, id, name, o.IsError, nil))...)
	}
	if kind := kindOf(prepared); kind != "" {
		announced := called(j.s, j.p, id, name, call.GetArguments())
		announced.GetToolCall().Awaits = kind
		j.events = append(j.events, announced)
	}
	return nil
}

// After takes in what subscribers said of a call that was answered at once.
func (j *Judging) After(settled *Settled, onError, after hook.Result) {
	if text, ok := after.Payload["result"].(string); ok && after.Replaced {
		settled.message.Content = content.Inline(text)
	}
	for _, r := range []hook.Result{onError, after} {
		j.hear(r)
		if r.Pause != "" {
			j.want(&harnessv1.HookState{Pause: r.Pause})
		}
		if r.Action == harnessv1.HookAction_HOOK_ACTION_ABORT {
			j.want(&harnessv1.HookState{Abort: agent.Aborted(r)})
		}
	}
}

// hear takes in what every subscriber may say.
func (j *Judging) hear(r hook.Result) {
	for _, e := range r.Events {
		j.events = append(j.events, event(j.s, j.p, e))
	}
	j.notes = append(j.notes, r.Context...)
	if r.Skip != "" || r.Replan != "" {
		j.want(&harnessv1.HookState{SkipNext: r.Skip, Replan: r.Replan})
	}
}

func (j *Judging) want(h *harnessv1.HookState) {
	if j.wants == nil {
		j.wants = &harnessv1.HookState{}
	}
	proto.Merge(j.wants, h)
}

// Judged is the record of what was decided.
func (j *Judging) Judged() Answered {
	notes, told := noted(j.s, j.p, j.notes)
	return Answered{
		Entry: &harnessv1.Journal{Entry: &harnessv1.Journal_CallsJudged{CallsJudged: &harnessv1.CallsJudged{
			Calls: j.calls, WorkItems: j.items, Hooks: j.wants,
		}}},
		Appended: append(j.appended, notes...),
		Events:   append(j.events, told...),
	}
}

// merged puts changed items in the place of earlier ones of the same response.
func merged(items, changed []*harnessv1.WorkItem) []*harnessv1.WorkItem {
	for _, c := range changed {
		at := -1
		for i, have := range items {
			if have.GetId() == c.GetId() {
				at = i
			}
		}
		if at < 0 {
			items = append(items, c)
		} else {
			items[at] = c
		}
	}
	return items
}

// kindOf is what a call waits for; empty when it waits for nobody.
func kindOf(c *harnessv1.PreparedCall) string {
	if c.GetReview() {
		return runstate.KindReview
	}
	return runstate.PendingKind(c.GetDisposition())
}

// prepare decides what becomes of a call as far as nobody has to be asked.
func prepare(s *harnessv1.Snapshot, call *harnessv1.ToolCall, in Surroundings) *harnessv1.PreparedCall {
	name := Canonical(call.GetName())
	prepared := &harnessv1.PreparedCall{CallId: call.GetId(), Tool: call.GetName()}
	refuse := func(as harnessv1.CallDisposition, message string) *harnessv1.PreparedCall {
		prepared.Disposition, prepared.Message = as, message
		return prepared
	}
	spec := in.Tools.Lookup(name)
	if spec == nil {
		if in.Blocked != nil && in.Blocked(name) {
			return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, mode.BlockedText(runstate.Mode(s), name))
		}
		message := fmt.Sprintf("There is no tool %q.", content.Cut(name, 64))
		if near := in.Tools.Near(name); len(near) > 0 {
			message += " Did you mean " + strings.Join(near, " or ") + "?"
		} else {
			message += " Use one of the tools that you are offered."
		}
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, message)
	}
	prepared.Offered = true
	if err := in.Tools.Validate(name, call.GetArguments().GetInline()); err != nil {
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, err.Error())
	}
	a := spec.GetAnnotations()
	prepared.Origin = spec.GetOrigin()
	prepared.Reads, prepared.Writes, prepared.Explores = a.GetReads(), a.GetWrites(), a.GetExplores()
	switch {
	case name == AskUser && spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_QUESTION
		prepared.Message = question(call.GetArguments().GetInline())
		return prepared
	case name == WorkComplete && spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS
		return prepared
	}
	prepared.ParallelSafe, prepared.Idempotent = a.GetParallelSafe(), a.GetIdempotent()
	allowed := harnessv1.CallDisposition_CALL_DISPOSITION_RUN
	switch spec.GetOrigin() {
	case harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT:
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT
	case harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS
	}
	decision, why := decide(s, spec, call.GetArguments().GetInline(), in.Made)
	switch {
	case decision == harnessv1.ToolDecision_TOOL_DECISION_DENY:
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+why)
	case decision == harnessv1.ToolDecision_TOOL_DECISION_ASK && allowed != harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS:
		prepared.Disposition, prepared.Message = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, why
	default:
		prepared.Disposition = allowed
	}
	return prepared
}

// decide asks the policy of the agent.
func decide(s *harnessv1.Snapshot, spec *harnessv1.ToolSpec, arguments string, made *agent.Definition) (harnessv1.ToolDecision, string) {
	if made == nil {
		return policy.Decide(s.GetToolRules(), spec, s.GetGrantedTools(), s.GetConfig().GetTools().GetYolo())
	}
	return made.Policy.Decide(spec, arguments, s.GetGrantedTools(), s.GetConfig().GetTools().GetYolo())
}
