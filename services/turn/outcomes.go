package turn

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// addOutcomes adds the results of this step for the detection of loops and stalls.
func (c *completion) addOutcomes(end End) {
	outcomes := end.Outcomes
	if outcomes == nil {
		outcomes = runstate.NewOutcomes(c.s, nil, nil)
	}
	c.countResults()
	for _, r := range c.inOrder() {
		outcomes.Record(c.s, runstate.Outcome{Tool: r.tool, Arguments: c.p.written[r.call], Result: r.content, Basis: c.p.basis(r.call)})
	}
}

// basis returns what distinguishes the outcome of a call from others of its tool. A call that
// could not be carried out has changed nothing.
func (p *Progress) basis(id string) progress.Basis {
	for _, c := range p.Prepared {
		switch {
		case c.GetCallId() != id:
		case c.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_INVALID:
			return progress.ByResult
		default:
			return runstate.BasisOf(harnesstool.CanonicalName(c.GetTool()), c)
		}
	}
	for _, c := range p.approved {
		if c.GetCallId() == id {
			return runstate.BasisOf(c.GetTool(), c)
		}
	}
	return progress.ByArguments
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

// inOrder returns the results of this step in the order of their calls: which of
// two parallel calls ended first is random.
func (c *completion) inOrder() []result {
	place := map[string]int{}
	for i, call := range c.p.Response.GetCalls() {
		place[call.GetCallId()] = i
	}
	for i, call := range c.p.Calls {
		if _, known := place[call.ID]; !known {
			place[call.ID] = i
		}
	}
	results := slices.Clone(c.p.results)
	for _, call := range c.p.Calls { // repair answers it; that its end is unknown is an outcome too
		if c.p.Finished[call.ID] == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
			results = append(results, result{call: call.ID, tool: call.Tool, content: content.Inline("unknown")})
		}
	}
	slices.SortStableFunc(results, func(a, b result) int { return place[a.call] - place[b.call] })
	return results
}

// countResults adds the results of the turn to the figures of the segment.
func (c *completion) countResults() {
	if c.s.GetQuality() == nil {
		return
	}
	for _, r := range c.inOrder() {
		quality.CountContent(c.s.GetQuality(), r.tool, r.content)
	}
}
