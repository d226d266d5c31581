package runstate

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// RecordDone records whether the agent declared itself done in the present turn, where a repeated
// stop decision reads it. It changes s.
func RecordDone(s *harnessv1.Snapshot, done bool) {
	if s.GetTurn() != nil {
		s.Turn.AgentDone = done
	}
}

// WithdrawDone withdraws the agent's declaration that it is done in the open turn, because the
// agent has not read a message that came later. It changes s.
func WithdrawDone(s *harnessv1.Snapshot) {
	t := s.GetTurn()
	if !t.GetOpen() {
		return
	}
	t.AgentDone, t.CalledWorkComplete, s.Summary = false, false, nil
	s.Output, s.OutputProblem = nil, ""
}
