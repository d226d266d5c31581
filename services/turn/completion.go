package turn

import (
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
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

// completion is the end of a turn as it is being made.
type completion struct {
	s       *harnessv1.Snapshot
	p       *Progress
	draft   *runstate.Draft
	outcome string // of step.end
}

// refuse answers a call that has no result with an error.
func (c *completion) refuse(id, name string, marks *harnessv1.ResultMarks, text string) {
	result := toolcall.Result(id, name, text, true)
	mark.Result(result, marks, text, nil)
	c.draft.Append(result)
	c.draft.Emit(event.ToolError(id, name, nil))
}
