package turn

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Ending says how the work on a turn came to its end.
type Ending struct {
	// Interrupted says that it was broken off because an interrupt or a cancel
	// came in, or the time ran out. What ran is dead.
	Interrupted bool
	// Error is why it could not be carried out; nil when it was.
	Error *harnessv1.TurnError
	// Seen says whether an outcome of a call, by its signature, came about in the
	// segment before this turn; nil: only the last calls are known.
	Seen func(signature uint64) bool
	// Unbegun says that subscribers of before_step had not let the turn begin.
	Unbegun bool
	// ToolTokens is what the tools that were offered weigh.
	ToolTokens uint32
	// Now is when waiting for answers begins.
	Now time.Time
}

// nudge asks a silent agent to decide.
const nudge = `Your last response had no tool call, so nothing has happened since. Do not repeat or
summarise what you said. Do exactly one of these now:
1. The task is done: call work_complete with a summary.
2. It is not done: make the next tool call.
3. You are stuck: try another way with a different tool call.`

const notRun = "The run was interrupted before this call had run."

// Complete ends a turn, or the part of it that could be carried out. s is the
// task's snapshot with the journal's messages counted; it is changed and
// becomes the step's.
func Complete(s *harnessv1.Snapshot, p *Progress, end Ending) (*harnessv1.Outcome, error) {
	// A call is killed only to break the turn off. The worker that did so may have
	// died before it could say it.
	end.Interrupted = end.Interrupted || p.broken()
	c := &completing{s: s, p: p, step: &harnessv1.Step{From: Name, To: workflow.Next(s.GetWorkflow(), Name), Snapshot: s}}
	if end.Error == nil && p.Abort != "" {
		end.Error = &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, Message: p.Abort}
	}
	c.opened()
	c.account(end)
	c.leaveOver(end)
	c.outcomes(end)
	complete := &harnessv1.TurnComplete{TurnNumber: p.Number, Error: end.Error, Interrupted: end.Interrupted}
	if err := c.conclude(complete, end); err != nil {
		return nil, err
	}
	if complete.GetError() != nil {
		c.step.To = workflow.StopDecision
	}
	c.step.Message = &harnessv1.Step_TurnComplete{TurnComplete: complete}
	return &harnessv1.Outcome{Step: c.step, Appended: c.appended, Events: c.events}, nil
}

// broken says that a call of the turn was killed.
func (p *Progress) broken() bool {
	for _, outcome := range p.Finished {
		if outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
			return true
		}
	}
	return false
}

type completing struct {
	s        *harnessv1.Snapshot
	p        *Progress
	step     *harnessv1.Step
	appended []*harnessv1.Message
	events   []*harnessv1.Event
}

// account notes what the response used and said.
func (c *completing) account(end Ending) {
	s, p := c.s, c.p
	if p.Response == nil {
		s.FailedTries += p.FailedTries
		return
	}
	s.FailedTries = 0
	usage := p.Response.GetUsage()
	runstate.AddUsage(s, usage)
	runstate.CountCalls(s, len(p.Response.GetCalls()))
	if len(p.Response.GetCalls()) > 0 {
		s.ContinuationCount = 0
	}
	c.activity()
	if text := p.Message.GetContent(); content.Text(text) != "" {
		s.Answer = proto.CloneOf(text)
	}
	b := s.TokenBudget
	if b == nil {
		b = &harnessv1.TokenBudget{}
		s.TokenBudget = b
	}
	b.ToolTokens = end.ToolTokens
	if reported := usage.GetInputTokens() + usage.GetOutputTokens(); usage.GetInputTokens() > 0 {
		// The report covers everything up to and with the response. What was
		// appended behind it was counted with the journal; it is counted again
		// from here, exactly.
		b.ReportedTokens = uint32(min(reported, 1<<32-1)) //nolint:gosec // clamped
		b.ReportedMessages = p.Message.GetId()
		b.UnreportedBytes = p.behind
	}
	s.Turn = &harnessv1.TurnState{
		Number: p.Number, CalledTools: len(p.Response.GetCalls()) > 0,
		Calls: uint32(len(p.Response.GetCalls())), //nolint:gosec // bounded by a response
	}
	if summary := summaryOf(p.Message, p.Prepared); summary != nil {
		s.Turn.AgentDone, s.Turn.CalledWorkComplete = true, true
		s.Summary = summary
	}
}

// leaveOver takes care of the calls that have no result yet.
func (c *completing) leaveOver(end Ending) {
	s, p := c.s, c.p
	for _, call := range p.Calls {
		runstate.RemovePending(s, call.ID) // approved ones are over, one way or another
		outcome, ended := p.Finished[call.ID]
		switch {
		case ended && outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
			s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{
				CallId: call.ID, Tool: call.Tool, TurnNumber: p.Number,
				Class: harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN,
			})
		case !ended && (end.Interrupted || end.Error != nil):
			c.refuse(call.ID, call.Tool)
		}
	}
	if p.Unjudged() { // nobody has decided: broken off before
		for _, call := range p.Response.GetCalls() {
			c.refuse(call.GetCallId(), call.GetTool())
		}
	}
	for _, prepared := range p.Prepared {
		kind := kindOf(prepared)
		if kind == "" {
			continue
		}
		if end.Interrupted || end.Error != nil {
			c.refuse(prepared.GetCallId(), prepared.GetTool())
			continue
		}
		arguments, deadline := proto.CloneOf(p.arguments[prepared.GetCallId()]), runstate.AnswerDeadline(s, kind, end.Now)
		why := prepared.GetMessage()
		if kind == runstate.KindQuestion {
			why = content.Cut(why, maxQuestion) // it stands in the arguments, whole
		}
		s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{
			CallId: prepared.GetCallId(), Tool: prepared.GetTool(), Arguments: arguments, Kind: kind, Origin: prepared.GetOrigin(),
			Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Why: why, TurnNumber: p.Number, Deadline: deadline,
			Reads: prepared.GetReads(), Writes: prepared.GetWrites(), Explores: prepared.GetExplores(),
		})
		if kind != runstate.KindApproval && kind != runstate.KindReview {
			continue // it was announced as a call
		}
		c.emit(&harnessv1.Event{Event: &harnessv1.Event_ApprovalRequested{ApprovalRequested: &harnessv1.ApprovalRequested{
			CallId: prepared.GetCallId(), Tool: prepared.GetTool(), Arguments: proto.CloneOf(arguments), Why: prepared.GetMessage(), Deadline: deadline,
		}}})
	}
}

// maxQuestion bounds what the state holds of a question beside the call's
// arguments, in bytes.
const maxQuestion = 160

func (c *completing) refuse(id, name string) {
	c.add(result(c.p.Number, id, name, notRun, true))
	c.emit(ended(c.s, c.p, id, name, true, nil))
}

// conclude decides how the turn counts and changes the phase accordingly.
func (c *completing) conclude(complete *harnessv1.TurnComplete, end Ending) error {
	s, p := c.s, c.p
	outcome, message := "completed", ""
	responded := p.Response != nil || p.Resumed || p.Skip != ""
	paused := p.Admitted.GetAction() == harnessv1.HookAction_HOOK_ACTION_PAUSE
	switch {
	case end.Error != nil:
		outcome, message = "error", end.Error.GetMessage()
	case end.Interrupted:
		outcome = "interrupted"
	case len(runstate.AwaitedCalls(s)) > 0:
		complete.Awaiting = true
		s.Turn.Open = true
		c.emitEnd("awaiting_tool", "")
		return runstate.ChangePhase(c.step, s, harnessv1.PhaseInput_PHASE_INPUT_AWAIT_TOOL)
	case p.Skip != "":
		outcome, message = "skipped", p.Skip
		s.Turn = &harnessv1.TurnState{Number: p.Number}
	case paused:
		outcome = "paused"
	case p.Response != nil && len(p.Response.GetCalls()) == 0:
		c.silence()
	}
	if responded {
		runstate.EndTurn(s)
	} else if s.Turn != nil {
		s.Turn.Open = false
	}
	complete.AgentDone = s.GetTurn().GetAgentDone()
	complete.CalledWorkComplete = s.GetTurn().GetCalledWorkComplete()
	if !responded {
		complete.AgentDone, complete.CalledWorkComplete = false, false
	}
	if outcome != "paused" && !end.Unbegun { // a turn that a hook held up has not begun
		c.emitEnd(outcome, message)
	}
	return runstate.ChangePhase(c.step, s, harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED)
}

// silence nudges an agent that made no call, or takes it at its silence.
func (c *completing) silence() {
	s, cfg := c.s, c.s.GetConfig().GetContinuation()
	if c.p.Response.GetFinishReason() == "length" && c.p.told {
		return // it wanted to go on and was told what happened
	}
	if !cfg.GetEnabled() || s.GetContinuationCount() >= cfg.GetMaxPrompts() {
		s.Turn.AgentDone = true
		return
	}
	s.ContinuationCount++
	text := cfg.GetText()
	if text == "" {
		text = runstate.MarkGuidance(nudge)
	}
	c.add(&harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION, Content: content.Inline(text),
	})
	c.emit(event(s, c.p, &harnessv1.Event{Event: &harnessv1.Event_ContinuationPrompt{ContinuationPrompt: &harnessv1.ContinuationPrompt{
		Count: s.GetContinuationCount(), Max: cfg.GetMaxPrompts(),
	}}}))
}

func (c *completing) emitEnd(outcome, message string) {
	c.emit(&harnessv1.Event{Event: &harnessv1.Event_StepEnd{StepEnd: &harnessv1.StepEnd{Outcome: outcome, Error: message}}})
}

func (c *completing) emit(e *harnessv1.Event) {
	c.events = append(c.events, event(c.s, c.p, e))
}

func (c *completing) add(m *harnessv1.Message) {
	c.appended = append(c.appended, runstate.AppendMessages(c.s, c.p.Number, m)...)
}
