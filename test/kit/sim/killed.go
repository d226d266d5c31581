package sim

import (
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// killedAreDead: a call that is recorded as cancelled does not run on any host, and when a
// run is interrupted, all of its calls that still run are recorded as unknown.
func (w *World) killedAreDead(l *Log, e runlog.Entry) string {
	s := &l.state
	if f := e.Record.GetJournal().GetToolFinished(); f != nil {
		if s.outcomes == nil {
			s.outcomes = map[string]harnessv1.ToolOutcome{}
		}
		s.outcomes[f.GetCallId()] = f.GetOutcome()
		if f.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
			if host := w.runs(l.Run.ID, f.GetCallId()); host != "" {
				return fmt.Sprintf("call %s is recorded as cancelled and runs on %s", f.GetCallId(), host)
			}
		}
	}
	for _, ev := range e.Record.GetEvents() {
		if ev.GetRunInterrupted() == nil {
			continue
		}
		for _, h := range w.hosts {
			for _, c := range h.running {
				if c.run == l.Run.ID && c.tool != checkTool && s.outcomes[c.id] != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
					return fmt.Sprintf("the run is interrupted, and call %s runs on %s", c.id, h.name)
				}
			}
		}
	}
	return ""
}

// runs returns the host on which a call runs; empty if there is none.
func (w *World) runs(run, id string) (host string) {
	for _, h := range w.hosts {
		for _, c := range h.running {
			if c.run == run && c.id == id {
				return h.name
			}
		}
	}
	return ""
}
