package input

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// interrupt is stored while the run is running or about to run, and while calls wait for
// answers, because it answers them.
func (s State) interrupt() Admission {
	if n := len(s.Waiting); n > 0 {
		if s.Waiting[n-1].GetInterrupt() != nil {
			return Unneeded // one is already stored and nothing after it
		}
		return Store
	}
	if s.Quiescent && (s.at(runlog.End) || len(runstate.AwaitedCalls(s.Step.GetSnapshot())) == 0) {
		return Unneeded
	}
	return Store
}

// RecheckInterrupt returns why the run refuses an interrupt. resumes: an input before it has resumed the run.
func RecheckInterrupt(s *harnessv1.Snapshot, resumes bool) (refusal string) {
	switch {
	case runstate.Ended(s):
		return hasEnded
	case s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED && !resumes && len(runstate.AwaitedCalls(s)) == 0 && !runstate.WaitsForAgents(s.GetStopReason()):
		return "the run rests already"
	}
	return ""
}
