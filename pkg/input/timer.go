package input

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// RecheckTimer returns why the run refuses a timer that has fired.
func RecheckTimer(s runstate.SharedFields, t *harnessv1.TimerFired) (refusal string) {
	if s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || t.GetParkVersion() != s.GetParkVersion() {
		return "the park that set the timer is over"
	}
	return ""
}
