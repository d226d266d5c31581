// Package exit names the exit codes of the program and maps the result of a run to one.
package exit

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// Exit codes of the commands; those that follow a run use all of them.
const (
	Done        = 0 // DONE and accepted
	Error       = 1 // usage or internal error
	Failed      = 2 // FAILED
	Stalled     = 3 // STALLED
	Parked      = 4 // PARKED
	NotAccepted = 5 // DONE, but the end was not accepted as complete
	Cancelled   = 6 // CANCELLED
)

// Code returns the exit code for a result.
func Code(r *harnessv1.HarnessResult) int {
	switch r.GetStatus() {
	case harnessv1.RunStatus_RUN_STATUS_DONE:
		if r.GetAccepted() {
			return Done
		}
		return NotAccepted
	case harnessv1.RunStatus_RUN_STATUS_FAILED:
		return Failed
	case harnessv1.RunStatus_RUN_STATUS_STALLED:
		return Stalled
	case harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		return Cancelled
	case harnessv1.RunStatus_RUN_STATUS_PARKED:
		return Parked
	default:
		return Error
	}
}
