package turn

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// notRun is the result of a call that the turn did not reach.
const notRun = "The run was interrupted before this call had run."

// addUnfinished keeps the calls that wait for an answer, and refuses the others
// that have no result if the turn did not reach them.
func (c *completion) addUnfinished(end End) {
	s, p := c.s, c.p
	if len(runstate.AwaitedCalls(s)) == 0 {
		s.PendingTools = nil
	}
	for _, call := range p.Calls {
		outcome, ended := p.Finished[call.ID]
		if !ended && call.Held() && end.Interrupted {
			continue // repair has it cancelled
		}
		runstate.RemovePending(s, call.ID) // an approved call waits no longer
		switch {
		case ended && outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
			s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{
				CallId: call.ID, Tool: call.Tool, TurnNumber: p.Number,
				Class: harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN, Marks: mark.Pending(call.Marks), Changes: call.Changes,
			})
		case ended && outcome == toolcall.InputRequired:
			c.addQuestion(call, end)
		case !ended && (end.Interrupted || end.Error != nil):
			c.release(call.HostID(), call.Question)
			c.refuse(call.ID, call.Tool, call.Marks, notRun)
		}
	}
	if p.unjudged() { // stopped before the calls were judged
		for _, call := range p.Response.GetCalls() {
			c.refuse(call.GetCallId(), call.GetTool(), mark.OfCall(s.GetConfig(), call.GetTool(), nil, ""), notRun)
		}
	}
	var replies []agentReply
	for _, prepared := range p.Prepared {
		if toolcall.Kind(prepared) == "" {
			continue
		}
		waits, ok := toolcall.Request(prepared, p.arguments[prepared.GetCallId()], p.Number).(toolcall.PendingCall)
		if !ok {
			continue
		}
		if end.Interrupted || end.Error != nil {
			c.refuse(prepared.GetCallId(), prepared.GetTool(), prepared.GetMarks(), notRun)
			continue
		}
		pending, kind := proto.CloneOf(waits.PendingCall), waits.GetKind()
		pending.Deadline = runstate.AnswerDeadline(s, kind, end.Now)
		switch kind {
		case runstate.KindWait:
			runstate.StartWait(pending, end.Now)
		case runstate.KindAgent:
			if reply := tree.Accept(s, end.Run, pending, end.Agents, end.Now); reply != nil {
				replies = append(replies, agentReply{call: pending, Reply: reply})
				continue
			}
		}
		s.PendingToolCalls = append(s.PendingToolCalls, pending)
		if kind != runstate.KindApproval && kind != runstate.KindReview {
			continue // announced as a call
		}
		pending.Preview = runstate.Preview(s, pending, p.execution.proposed[prepared.GetCallId()])
		if text, known := p.text(pending.GetCallId(), pending.GetArguments()); known {
			pending.Preview.Disguised = approval.Disguised(text)
		}
		c.addTool(pending, end)
		c.draft.Emit(event.ApprovalRequested(pending))
	}
	c.delegate(end, replies)
}

// agentReply is the answer that a call of a sub-agent gets immediately.
type agentReply struct {
	call *harnessv1.PendingCall
	*tree.Reply
}

// delegate starts the sub-agents that may work now, and answers the calls that do not wait
// for them.
func (c *completion) delegate(end End, replies []agentReply) {
	scheduled := tree.Schedule(c.s, end.Run, end.Agents, false, end.Now)
	c.draft.Emit(scheduled.Events...)
	for _, child := range scheduled.Broke {
		for i := range replies {
			if replies[i].call.GetCallId() == tree.StartedBy(child) {
				replies[i].Reply = &tree.Reply{Text: tree.BrokeText, Failed: true}
			}
		}
		for _, call := range runstate.AwaitedCalls(c.s) {
			if call.GetCallId() == tree.StartedBy(child) {
				replies = append(replies, agentReply{call: call, Reply: &tree.Reply{Text: tree.BrokeText, Failed: true}})
			}
		}
	}
	for _, g := range tree.Over(c.s) { // none of its tasks has been started, so no result is a blob
		text, failed, _ := tree.GraphText(g, func(result *harnessv1.Content) (string, error) { return content.Text(result), nil })
		for _, call := range runstate.AwaitedCalls(c.s) {
			if call.GetCallId() == g.GetCallId() {
				replies = append(replies, agentReply{call: call, Reply: &tree.Reply{Text: text, Failed: failed}})
			}
		}
	}
	for _, r := range replies {
		result := toolcall.Result(r.call.GetCallId(), r.call.GetTool(), r.Text, r.Failed)
		mark.Result(result, r.call.GetMarks(), r.Text, nil)
		c.draft.Append(result)
		c.draft.Emit(event.ToolEnded(r.call.GetCallId(), r.call.GetTool(), r.Failed, nil))
		runstate.RemovePending(c.s, r.call.GetCallId())
	}
}

// addTool keeps the tool of a call that a person decides about, and proposes rules that allow
// calls like it for the rest of the run.
func (c *completion) addTool(call *harnessv1.PendingCall, end End) {
	if end.Offer == nil {
		return
	}
	spec := end.Offer.Lookup(harnesstool.CanonicalName(call.GetTool()))
	if spec == nil {
		return
	}
	if approval.Tool(c.s, call) == nil {
		c.s.PendingTools = append(c.s.PendingTools, &harnessv1.PendingTool{
			Name: call.GetTool(), ParametersSchema: content.Inline(spec.GetParametersSchema()), Origin: spec.GetOrigin(), Annotations: proto.CloneOf(spec.GetAnnotations()),
		})
	}
	text, known := c.p.text(call.GetCallId(), call.GetArguments())
	if known && call.GetKind() == runstate.KindApproval && !call.GetOnlyOnce() && !call.GetGuarded() {
		call.Preview.Rules = policy.Propose(approval.Reached(call, spec), text, c.s.GetWorkspace())
	}
}
