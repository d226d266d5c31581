package turn

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// addOutcomes adds the results of this step for the detection of loops and stalls.
func (c *completion) addOutcomes(end End) {
	s := c.s
	here := map[uint64]bool{}
	for _, r := range c.inOrder() {
		strict, loose := progress.Signature(r.tool, content.Key(c.p.written[r.call]), r.digest)
		novelty := runstate.Fresh
		if end.Novelty != nil {
			novelty = end.Novelty(strict)
		}
		if here[strict] || novelty == runstate.Fresh && slices.Contains(s.GetDoomLoop().GetStrict(), strict) {
			novelty = runstate.Known
		}
		here[strict] = true
		runstate.RecordOutcome(s, r.tool, strict, loose, novelty)
	}
}

// novelty returns a function that returns how new an outcome is; nil if no result was stored
// in this step. What the view of the turn does not show in full counts as taken away.
func (p *Progress) novelty(s *State) func(uint64) runstate.Novelty {
	if len(p.results) == 0 {
		return nil
	}
	first, limit := s.Snapshot.GetProgressTracker().GetFirstMessage(), s.Snapshot.GetMessageCount()+1
	shows := p.shows(s)
	return func(signature uint64) runstate.Novelty {
		switch id := p.execution.conversation.NewestOutcome(signature, first, limit); {
		case id == 0:
			return runstate.Fresh
		case shows(id):
			return runstate.Known
		}
		return runstate.Repeated
	}
}

// shows returns a function that reports whether the view of the turn shows a message
// unchanged. Its first call indexes the conversation.
func (p *Progress) shows(s *State) func(id uint64) bool {
	c, plan := p.execution.conversation, s.Snapshot.GetCompactionPlan()
	if len(plan.GetWatermarks()) == 0 && plan.GetSummary() == nil {
		return func(uint64) bool { return true }
	}
	if s.Shows != nil {
		return func(id uint64) bool { return s.Shows(c, id) }
	}
	var rules *view.Rules
	return func(id uint64) bool {
		if rules == nil {
			x := &view.Index{}
			x.Add(c)
			rules = view.NewRules(plan, x)
		}
		return rules.Unchanged(id)
	}
}
