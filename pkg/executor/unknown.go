package executor

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// leaveUnknown adds the calls that a journal has started and not ended to the pending calls of
// a snapshot: the step is given up, and nothing else answers them. Repair tells the model that
// their effects are unknown.
func leaveUnknown(s *harnessv1.Snapshot, journal []runlog.Entry) {
	var started []string
	tools := map[string]string{}
	for _, c := range s.GetPendingToolCalls() {
		tools[c.GetCallId()] = c.GetTool()
	}
	for _, e := range journal {
		j := e.Record.GetJournal()
		for _, c := range j.GetModelResponded().GetCalls() {
			tools[c.GetCallId()] = c.GetTool()
		}
		started = append(started, j.GetToolsStarted().GetCallIds()...)
		if f := j.GetToolFinished(); f != nil {
			started = slices.DeleteFunc(started, func(id string) bool { return id == f.GetCallId() })
		}
	}
	turn := s.GetTurnCount() + 1
	if s.GetTurn().GetOpen() {
		turn = s.GetTurn().GetNumber()
	}
	for _, id := range started {
		s.PendingToolCalls = slices.DeleteFunc(s.PendingToolCalls, func(c *harnessv1.PendingCall) bool { return c.GetCallId() == id })
		s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{
			CallId: id, Tool: tools[id], TurnNumber: turn, Class: harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN,
		})
	}
}
