package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// addOutcomes adds the results of this step for the detection of loops and stalls.
func (c *completion) addOutcomes(end End) {
	outcomes := end.Outcomes
	if outcomes == nil {
		outcomes = runstate.NewOutcomes(c.s, nil, nil)
	}
	for _, r := range c.inOrder() {
		strict, loose := progress.Signature(r.tool, content.Key(c.p.written[r.call]), r.digest)
		outcomes.Record(c.s, r.tool, strict, loose)
	}
}

// outcomes returns what judges the outcomes of this step; nil if no result was stored in it.
func (p *Progress) outcomes(s *State) *runstate.Outcomes {
	if len(p.results) == 0 {
		return nil
	}
	return runstate.NewOutcomes(s.Snapshot, p.execution.conversation, p.shows(s))
}

// shows returns a function that reports whether the view of the turn shows a message
// unchanged.
func (p *Progress) shows(s *State) func(id uint64) bool {
	c, plan := p.execution.conversation, s.Snapshot.GetCompactionPlan()
	if s.Shows == nil || !view.Changes(plan) {
		return view.Shows(c, plan)
	}
	return func(id uint64) bool { return s.Shows(c, id) }
}
