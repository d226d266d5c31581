package repair

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func (d *decision) applyTimer(t *harnessv1.TimerFired) (refusal string, err error) {
	if refusal := input.RecheckTimer(d.s, t); refusal != "" {
		return refusal, nil
	}
	if at := d.s.GetWakeAt(); at != nil && at.AsTime().After(d.now) {
		d.now = at.AsTime() // the timer proves it, even if the clock here is slow
	}
	if d.s.GetPausedPhase() != unpaused && runstate.WaitsForAgents(d.s.GetStopReason()) && len(runstate.AwaitedCalls(d.s)) == 0 {
		return "", nil // of what runs below
	}
	if len(runstate.AwaitedCalls(d.s)) > 0 {
		d.answerExpired()
		if err := d.checkWaits(); err != nil {
			return "", err
		}
		d.resumeIfAnswered("timer")
		return "", nil
	}
	d.resumed = "timer"
	return "", nil
}
