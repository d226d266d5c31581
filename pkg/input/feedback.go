package input

import (
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// checkFeedback validates feedback by itself.
func checkFeedback(f *harnessv1.Feedback) error {
	if Thumb(f.GetThumb()) == "" {
		return fault.Invalid("feedback.thumb", "must be THUMB_UP or THUMB_DOWN")
	}
	return nil
}

// feedback accepts what a user says of a run that has ended and is not about to be reopened.
func (s State) feedback() (Admission, error) {
	ended := s.at(runlog.End) || runstate.Ended(s.Step.GetSnapshot())
	if !ended || s.waits(isUserMessage) || s.waits(isResume) {
		return 0, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ACTIVE,
			"run "+s.Run.String()+" has not ended; give feedback when it has", "namespace", s.Run.Namespace, "run_id", s.Run.ID)
	}
	return Store, s.room()
}

// RecheckFeedback returns why the run refuses feedback.
func RecheckFeedback(s runstate.SharedFields, f *harnessv1.Feedback) (refusal string) {
	switch {
	case !runstate.Ended(s):
		return "the run has not ended"
	case Thumb(f.GetThumb()) == "":
		return "feedback is up or down"
	}
	return ""
}

// Thumb returns the name of a thumb in events; empty if it is unknown.
func Thumb(t harnessv1.Thumb) string {
	switch t {
	case harnessv1.Thumb_THUMB_UP:
		return "up"
	case harnessv1.Thumb_THUMB_DOWN:
		return "down"
	default:
		return ""
	}
}
