package input

import (
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// steer accepts an input for a run that has not ended or is about to be reopened.
func (s State) steer() (Admission, error) {
	if s.at(runlog.End) && !s.waits(isUserMessage) && !s.waits(isResume) {
		return 0, s.ended("send it a message first")
	}
	return Store, s.room()
}

// RecheckReplan returns why the run refuses a request for another plan.
func RecheckReplan(s runstate.SharedFields) (refusal string) {
	if runstate.Ended(s) {
		return hasEnded
	}
	return ""
}
