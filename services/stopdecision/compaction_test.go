package stopdecision_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestCompactionThatWasBrokenOff: an input arrived while a run waited for a summary, before
// its turn began or continued. The run goes back to repair and nothing else changes.
func TestCompactionThatWasBrokenOff(t *testing.T) {
	for name, c := range map[string]struct {
		number uint32 // of the turn
		change func(*harnessv1.Snapshot)
	}{
		"before a turn":       {5, func(*harnessv1.Snapshot) {}},
		"before the first":    {1, func(s *harnessv1.Snapshot) { s.TurnCount, s.Turn = 0, nil }},
		"after the last":      {5, func(s *harnessv1.Snapshot) { s.MaxTurns = 4 }},
		"in an open turn":     {5, func(s *harnessv1.Snapshot) { s.Turn = &harnessv1.TurnState{Number: 5, Open: true, AgentDone: true} }},
		"with another plan":   {5, func(s *harnessv1.Snapshot) { s.Hooks = &harnessv1.HookState{Replan: "why"} }},
		"after a refusal":     {5, func(s *harnessv1.Snapshot) { s.TokenBudget = &harnessv1.TokenBudget{Exceeded: true, Refusals: 1} }},
		"when it made a pass": {5, func(s *harnessv1.Snapshot) { s.CompactionPlan = &harnessv1.CompactionPlan{Passes: 1, LastPassTurn: 4} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := at(4)
			s.Phase, s.ToldTurn, s.Spent = harnessv1.Phase_PHASE_EXECUTING, 4, &harnessv1.Spent{Turns: 4}
			c.change(s)
			o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: c.number, Interrupted: true})
			step := o.GetStep()
			if verdict(o) != "repair" || step.GetRepairTrigger().GetCause() != harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE {
				t.Errorf("goes to %s: %v", verdict(o), step)
			}
			if !proto.Equal(step.GetSnapshot(), s) || len(o.GetEvents()) > 0 || len(o.GetAppended()) > 0 || len(step.GetPhaseChanges()) > 0 {
				t.Errorf("changed to %v with %v and %v", step.GetSnapshot(), o.GetEvents(), o.GetAppended())
			}
		})
	}
}

// TestCompactionThatFreesNothing ends the run in the phase before its turn.
func TestCompactionThatFreesNothing(t *testing.T) {
	s := at(4)
	s.Phase, s.TokenBudget = harnessv1.Phase_PHASE_EXECUTING, &harnessv1.TokenBudget{Exceeded: true, Refusals: 1}
	o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 5, Error: failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED)})
	if verdict(o) != "FAILED context_exhausted false" || o.GetStep().GetSnapshot().GetTurnCount() != 4 {
		t.Errorf("goes to %s after %d turns", verdict(o), o.GetStep().GetSnapshot().GetTurnCount())
	}
}
