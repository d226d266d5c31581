package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// reminder asks an agent that made no call to decide.
const reminder = `Your last response had no tool call, so nothing has happened since. Do not repeat or
summarise what you said. Do exactly one of these now:
1. The task is done: call work_complete with a summary.
2. It is not done: make the next tool call.
3. You are stuck: try another way with a different tool call.`

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
