package follow

import (
	"context"
	"fmt"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// lagTime is how long a result waits for the events of the runs below it.
const lagTime = 3 * time.Second

// below is the progress of the runs of sub-agents.
type below struct {
	// agents are the names of the sub-agents whose runs were seen, by run.
	agents map[string]string
	// announced are the calls of open turns that wait; shown, those of turns that have ended: all
	// that leads to them was printed.
	announced, shown map[callKey]bool
	// late is a result with calls that are not shown yet: it is older than their events on the
	// stream. lag ends its wait.
	late *harnessv1.HarnessResult
	lag  <-chan time.Time
}

func newBelow() below {
	return below{agents: map[string]string{}, announced: map[callKey]bool{}, shown: map[callKey]bool{}}
}

// event takes an event of a tree.
func (b *below) event(e *harnessv1.Event) {
	run := e.GetRunId()
	if started := e.GetAgentStarted(); started != nil {
		b.agents[started.GetRunId()] = started.GetAgent()
	}
	if run == "" {
		b.late, b.lag = nil, nil // another result follows
		return
	}
	b.agents[run] = e.GetAgent()
	if call := e.GetToolCall(); call.GetAwaits() != "" {
		b.announced[callKey{run: run, call: call.GetCallId()}] = true
	}
	if asked := e.GetApprovalRequested(); asked != nil {
		b.announced[callKey{run: run, call: asked.GetCallId()}] = true
	}
	if asked := e.GetToolQuestion(); asked != nil {
		b.announced[callKey{run: run, call: asked.GetCallId(), round: asked.GetQuestion().GetRound()}] = true
	}
	if e.GetStepEnd() == nil {
		return
	}
	for key := range b.announced {
		if key.run == run {
			b.shown[key] = true
			delete(b.announced, key)
		}
	}
}

// lags reports whether a result has calls of runs below whose events were not seen yet.
func (b *below) lags(r *harnessv1.HarnessResult) bool {
	for _, call := range r.GetPending() {
		if call.GetRunId() != "" && !b.shown[keyOf(call)] {
			return true
		}
	}
	return false
}

// delays reports whether a result waits for the events of the runs below.
func (b *below) delays(r *harnessv1.HarnessResult) bool {
	if b.late == r || !b.lags(r) {
		return false
	}
	b.late, b.lag = r, time.After(lagTime)
	return true
}

// catchUp takes the result that waited once all events that it waited for were seen.
func (f *follower) catchUp(ctx context.Context) {
	if r := f.below.late; r != nil && !f.below.lags(r) {
		f.below.late, f.below.lag = nil, nil
		f.rest(ctx, r)
	}
}

// asker names the sub-agent and the run whose call waits, if it is one below; else empty.
func (f *follower) asker(call *harnessv1.PendingCall) string {
	if call.GetRunId() == "" {
		return ""
	}
	if agent := f.below.agents[call.GetRunId()]; agent != "" {
		return fmt.Sprintf("sub-agent %s (run %s)", agent, call.GetRunId())
	}
	return "sub-agent in run " + call.GetRunId()
}

// print prints an event. Without Tree, one of the run has no offset, as if it had no runs below.
func (f *follower) print(e *harnessv1.Event) {
	switch below := e.GetRunId() != ""; {
	case f.Tree && below && e.GetTime().AsTime().Before(f.Since):
		return
	case !f.Tree && below:
		return
	case !f.Tree:
		e.Offset = ""
	}
	f.Printer.Event(e)
}
