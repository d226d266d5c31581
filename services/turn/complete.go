package turn

import (
	"cmp"
	"time"

	"github.com/harnessmesh/harnessmesh/services/turn/hookpoint"
	"github.com/harnessmesh/harnessmesh/services/turn/judge"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"

	"github.com/harnessmesh/harnessmesh/services/turn/offer"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// End is how the work on a turn ended.
type End struct {
	// Interrupted is true if an interrupt, a cancel, or the time budget stopped the
	// turn. None of its calls runs any more.
	Interrupted bool
	// Error is why the turn failed; nil if it did not.
	Error *harnessv1.TurnError
	// Outcomes judges how new the outcomes of the calls are after what came
	// about in the segment before this turn; nil: only the last calls are known.
	Outcomes *runstate.Outcomes
	// Unadmitted is true if the subscribers of before_step did not let the turn begin.
	Unadmitted bool
	// ToolTokens is the estimated weight of the specs of the tools in the model's window.
	ToolTokens uint32
	// Offer is that of the calls; nil if it is unknown.
	Offer *offer.Offer
	// Run is the run of the turn, and Agents are its sub-agents.
	Run    runlog.Run
	Agents []*harnessv1.SubAgent
	// Now is when the wait for answers begins.
	Now time.Time
}

// reminder asks an agent that made no call to decide.
const reminder = `Your last response had no tool call, so nothing has happened since. Do not repeat or
summarise what you said. Do exactly one of these now:
1. The task is done: call work_complete with a summary.
2. It is not done: make the next tool call.
3. You are stuck: try another way with a different tool call.`

// notRun is the result of a call that the turn did not reach.
const notRun = "The run was interrupted before this call had run."

// close makes the outcome of the turn, and fires after_step.
func (p *Progress) close(s *State) Action {
	if p.execution.conversation == nil && len(p.results) > 0 {
		return LoadConversation{Closing: true}
	}
	if calls := p.unproposed(); len(calls) > 0 && p.execution.stop == nil && p.Abort == "" {
		return ProposeCalls{Calls: calls}
	}
	interrupted := p.interrupted(s)
	c, err := complete(p.snapshot(s), p, End{
		Interrupted: interrupted, Error: cmp.Or(p.noResponse(s), p.cutShortAgain(s)), Outcomes: p.outcomes(s), Unadmitted: p.unadmitted(s),
		ToolTokens: s.Offer.Tokens - min(s.Offer.Tokens, runstate.ToolTokens(p.refusedTools(s))), Offer: p.offer(s), Run: s.Run, Agents: s.Definition.Agents, Now: p.execution.now,
	})
	if err != nil {
		return Fail{Err: err}
	}
	if ended := c.draft.Step.GetTurnComplete(); p.execution.stop == nil && !ended.GetAwaiting() && !ended.GetInterrupted() && s.hooked(hookpoint.AfterStep) {
		if p.execution.afterStep == nil {
			return s.fire(p, hookpoint.AfterStep, "after", "", c.payload())
		}
		c.afterStep(*p.execution.afterStep)
	}
	return Return{Outcome: c.draft.Outcome(), Stopped: interrupted}
}

// completion is the end of a turn as it is being made.
type completion struct {
	s       *harnessv1.Snapshot
	p       *Progress
	draft   *runstate.Draft
	outcome string // of step.end
}

// complete ends a turn, or the part of it that could be carried out. s is the
// step's snapshot with the journal's messages counted; it is changed and becomes
// the next step's.
func complete(s *harnessv1.Snapshot, p *Progress, end End) (*completion, error) {
	// A call is killed only to stop the turn. The worker that did so may have died
	// before it stored the end of the turn.
	end.Interrupted = end.Interrupted || p.killed()
	c := &completion{s: s, p: p, draft: runstate.NewStep(Name, s, p.Number), outcome: "completed"}
	c.draft.Step.To = workflow.Next(s.GetWorkflow(), Name)
	if end.Error == nil && p.Abort != "" {
		end.Error = &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, Message: p.Abort}
	}
	c.addClaim()
	if long := tooLong(p.givenUp(s)); long != nil && end.Error.GetKind() == exhausted && runstate.Compacts(s) {
		runstate.RecordRefusal(s, long, end.ToolTokens)
	}
	c.addResponse(end)
	c.addUnfinished(end)
	c.addOutcomes(end)
	ended := &harnessv1.TurnComplete{TurnNumber: p.Number, Error: end.Error, Interrupted: end.Interrupted}
	if err := c.conclude(ended, end); err != nil {
		return nil, err
	}
	if ended.GetError() != nil {
		c.draft.Step.To = workflow.StopDecision
	}
	c.draft.Step.Message = &harnessv1.Step_TurnComplete{TurnComplete: ended}
	return c, nil
}

// payload is that of after_step.
func (c *completion) payload() map[string]any {
	ended := c.draft.Step.GetTurnComplete()
	return agent.StepPayload(c.outcome, ended.GetError().GetMessage(), &harnessv1.TurnState{
		AgentDone: ended.GetAgentDone(), CalledWorkComplete: ended.GetCalledWorkComplete(),
	})
}

// afterStep adds the effects of the subscribers of after_step.
func (c *completion) afterStep(e hook.Effects) {
	c.draft.Apply(e)
	if ended := c.draft.Step.GetTurnComplete(); e.Abort != "" && ended.GetError() == nil {
		ended.Error = &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, Message: e.Abort}
		c.draft.Step.To = workflow.StopDecision
	}
}

// addResponse adds the usage and the content of the response.
func (c *completion) addResponse(end End) {
	s, p := c.s, c.p
	for _, f := range p.Failures {
		runstate.AddTokens(s, f.GetUsage())
		if f.GetAdjustment() != nil {
			s.ModelAdjustments = runstate.Adjust(s.GetModelAdjustments(), f.GetAdjustment())
		}
	}
	if p.Response == nil {
		s.FailedTries += p.failedTries()
		return
	}
	s.FailedTries, s.AnswerModel = 0, p.Response.GetModel()
	usage := p.Response.GetUsage()
	runstate.AddUsage(s, usage)
	runstate.CountCalls(s, len(p.Response.GetCalls()))
	if len(p.Response.GetCalls()) > 0 {
		s.ContinuationCount = 0
	}
	c.addActivity()
	if text := p.Message.GetContent(); content.Text(text) != "" {
		s.Answer = proto.CloneOf(text)
	}
	b := s.TokenBudget
	if b == nil {
		b = &harnessv1.TokenBudget{}
		s.TokenBudget = b
	}
	b.ToolTokens, b.Exceeded, b.Refusals = end.ToolTokens, false, 0
	if reported := runstate.TotalTokens(usage); usage.GetInputTokens() > 0 {
		// The report covers everything up to and including the response. What
		// followed was counted with the journal and is counted again from here,
		// exactly. What a compaction had freed is not in it.
		b.ReportedTokens = uint32(min(reported, 1<<32-1))
		b.ReportedMessages = p.Message.GetId()
		b.UnreportedBytes, b.FreedTokens = p.followed, 0
	}
	c.addRequest()
	s.Turn = &harnessv1.TurnState{
		Number: p.Number, CalledTools: len(p.Response.GetCalls()) > 0,
		Calls:    uint32(len(p.Response.GetCalls())), //nolint:gosec // bounded by a response
		CutShort: p.Response.GetCutShort(),
	}
	if summary := judge.Summary(p.Message, p.Prepared); summary != nil {
		s.Turn.AgentDone, s.Turn.CalledWorkComplete = true, true
		s.Summary = summary
		given := judge.Completion(p.Prepared)
		s.Output, s.OutputProblem = proto.CloneOf(given.GetOutput()), given.GetProblem()
	}
}

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
	if p.Unjudged() { // stopped before the calls were judged
		for _, call := range p.Response.GetCalls() {
			c.refuse(call.GetCallId(), call.GetTool(), mark.OfCall(s.GetConfig(), call.GetTool(), nil, ""), notRun)
		}
	}
	var replies []agentReply
	for _, prepared := range p.Prepared {
		waits, ok := toolcall.Request(prepared, p.arguments[prepared.GetCallId()], p.Number).(toolcall.Pending)
		if !ok {
			continue
		}
		if end.Interrupted || end.Error != nil {
			c.refuse(prepared.GetCallId(), prepared.GetTool(), prepared.GetMarks(), notRun)
			continue
		}
		pending, kind := waits.PendingCall, waits.GetKind()
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

// refuse answers a call that has no result with an error.
func (c *completion) refuse(id, name string, marks *harnessv1.ResultMarks, text string) {
	result := toolcall.Result(id, name, text, true)
	mark.Result(result, marks, text, nil)
	c.draft.Append(result)
	c.draft.Emit(event.ToolError(id, name, nil))
}

// conclude decides how the turn counts and changes the phase accordingly.
func (c *completion) conclude(ended *harnessv1.TurnComplete, end End) error {
	s, p := c.s, c.p
	outcome, message := "completed", ""
	begun := !end.Unadmitted
	switch {
	case end.Error != nil:
		outcome, message = "error", end.Error.GetMessage()
	case end.Interrupted:
		outcome = "interrupted"
	case len(runstate.AwaitedCalls(s)) > 0:
		ended.Awaiting = true
		s.Turn.Open = true
		c.draft.Emit(event.StepEnd("awaiting_tool", ""))
		return c.draft.Enter(harnessv1.PhaseInput_PHASE_INPUT_AWAIT_TOOL)
	case p.Skip != "":
		outcome, message = "skipped", p.Skip
		s.Turn = &harnessv1.TurnState{Number: p.Number}
	case p.Admitted.GetAction() == harnessv1.HookAction_HOOK_ACTION_PAUSE:
		begun = false
	case p.Response != nil && len(p.Response.GetCalls()) == 0:
		c.remind()
	}
	if p.Response != nil || p.Resumed || p.Skip != "" {
		runstate.EndTurn(s)
		ended.AgentDone = s.GetTurn().GetAgentDone()
		ended.CalledWorkComplete = s.GetTurn().GetCalledWorkComplete()
	} else if s.Turn != nil {
		s.Turn.Open = false
	}
	if begun {
		c.outcome = outcome
		c.draft.Emit(event.StepEnd(outcome, message))
	}
	return c.draft.Enter(harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED)
}

// remind asks an agent that made no call to decide what to do. After the
// configured number of reminders its silence means that it is done.
func (c *completion) remind() {
	s, cfg := c.s, c.s.GetConfig().GetContinuation()
	if c.p.Response.GetFinishReason() == "length" && c.p.cutOff {
		return // its calls were dropped, and the next request explains why
	}
	if !cfg.GetEnabled() || s.GetContinuationCount() >= cfg.GetMaxPrompts() {
		s.Turn.AgentDone = true
		return
	}
	s.ContinuationCount++
	text := cfg.GetText()
	if text == "" {
		text = runstate.MarkGuidance(reminder)
	}
	c.draft.Append(&harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION, Topic: c.draft.Topic("continuation"), Content: content.Inline(text),
	})
	c.draft.Emit(event.ContinuationPrompt(s.GetContinuationCount(), cfg.GetMaxPrompts()))
}
