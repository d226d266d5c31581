package target

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Next returns the command that continues a parked or ended run, and its purpose; both are empty for
// a run that is done, and for one whose calls wait for an answer. words are the flags that find
// the run, extension those that extend its budgets.
func Next(run string, r *harnessv1.HarnessResult, words, extension string) (purpose, command string) {
	resume := "harness resume " + run
	switch r.GetStatus() {
	case harnessv1.RunStatus_RUN_STATUS_PARKED:
		if len(r.GetPending()) > 0 {
			return "", ""
		}
		return "to continue", resume + extension + words
	case harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		return "to continue anyway", resume + words
	case harnessv1.RunStatus_RUN_STATUS_FAILED:
		switch r.GetReason().GetKind() {
		case runstate.ErrorKind(harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON):
			return "to try the step again", resume + words
		case runstate.ErrorKind(harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR), runstate.ErrorKind(harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED):
			return "to continue with another model, or with a key that works", resume + words + " --model PROVIDER:NAME"
		}
	case harnessv1.RunStatus_RUN_STATUS_STALLED:
	default:
		return "", ""
	}
	return "to continue", "harness run --continue " + run + words + " 'what to do now'"
}
