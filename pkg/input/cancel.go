package input

import (
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// cancel is stored while there is something to cancel, or about to be.
func (s State) cancel() (Admission, error) {
	if n := len(s.Waiting); n > 0 && isCancel(s.Waiting[n-1]) {
		return Unneeded, nil
	}
	if s.at(runlog.End) && !s.waits(isUserMessage) && !s.waits(isResume) {
		return 0, s.ended("there is nothing to cancel")
	}
	return Store, s.urgent()
}

// RecheckCancel returns why the run refuses a cancel.
func RecheckCancel(s runstate.SharedFields) (refusal string) {
	if runstate.Ended(s) {
		return hasEnded
	}
	return ""
}
