package follow

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// Exit codes of the commands that follow a run.
const (
	ExitDone        = 0 // DONE and accepted
	ExitError       = 1 // usage or internal error
	ExitFailed      = 2 // FAILED
	ExitStalled     = 3 // STALLED
	ExitParked      = 4 // PARKED
	ExitNotAccepted = 5 // DONE, but the end was not accepted as complete
	ExitCancelled   = 6 // CANCELLED
)

// ExitCode returns the exit code for a result.
func ExitCode(r *harnessv1.HarnessResult) int {
	switch r.GetStatus() {
	case harnessv1.RunStatus_RUN_STATUS_DONE:
		if r.GetAccepted() {
			return ExitDone
		}
		return ExitNotAccepted
	case harnessv1.RunStatus_RUN_STATUS_FAILED:
		return ExitFailed
	case harnessv1.RunStatus_RUN_STATUS_STALLED:
		return ExitStalled
	case harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		return ExitCancelled
	case harnessv1.RunStatus_RUN_STATUS_PARKED:
		return ExitParked
	default:
		return ExitError
	}
}
