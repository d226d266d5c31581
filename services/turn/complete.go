package turn

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

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
	c.addLedgers(end)
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
