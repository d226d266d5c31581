package turn

import (
	"cmp"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/turn/hookpoint"
)

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
			return s.fire(p.Number, hookpoint.AfterStep, "after", "", c.payload())
		}
		c.afterStep(*p.execution.afterStep)
	}
	return Return{Outcome: c.draft.Outcome(), Stopped: interrupted}
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

// Complete ends a turn. s is the step's snapshot with the journal's messages
// counted; it is changed and becomes the next step's.
func Complete(s *harnessv1.Snapshot, p *Progress, end End) (*harnessv1.Outcome, error) {
	c, err := complete(s, p, end)
	if err != nil {
		return nil, err
	}
	return c.draft.Outcome(), nil
}
