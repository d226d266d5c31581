package runstate

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// A run at whose step workers die is parked before it is failed: what killed them may be over
// when its timer fires. Each park is longer than the one before. A turn that ends without
// such an error ends the row.
const (
	maxPoisonParks = 3
	poisonPause    = 30 * time.Second
	poisonGrowth   = 4
)

// PoisonPark counts a park of a run at whose step workers died, and returns its reason and when
// the run continues. ok is false, and nothing is counted, after the last park in a row.
func PoisonPark(s *harnessv1.Snapshot, turn uint32, message string, now time.Time) (reason *harnessv1.StopReason, wake time.Time, ok bool) {
	if s.GetPoisonParks() >= maxPoisonParks {
		return nil, time.Time{}, false
	}
	pause := poisonPause
	for range s.GetPoisonParks() {
		pause *= poisonGrowth
	}
	s.PoisonParks++
	return &harnessv1.StopReason{
		Kind: KindPoison, Message: message, Details: &harnessv1.StopDetails{Turn: turn},
	}, now.Add(pause), true
}

// ParkForPoison parks the run of a step that the stop decision cannot decide about: workers died
// at a step to it or to repair. It reports whether the run is parked; the caller addresses
// the step to the park. The run must not be over, paused or have background commands.
func ParkForPoison(step *harnessv1.Step, s *harnessv1.Snapshot, message string, now time.Time) (parked bool, err error) {
	reason, wake, ok := PoisonPark(s, s.GetTurnCount(), message, now)
	if !ok {
		return false, nil
	}
	if err := ChangePhase(step, s, harnessv1.PhaseInput_PHASE_INPUT_PAUSE); err != nil {
		return false, err
	}
	s.StopReason = reason
	ParkClock(s, now)
	s.Status, s.ParkVersion, s.WakeAt = harnessv1.RunStatus_RUN_STATUS_PARKED, 0, timestamppb.New(wake)
	step.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: reason, Pending: AwaitedCalls(s), WakeAt: s.GetWakeAt()}}
	return true, nil
}
