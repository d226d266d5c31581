package runstate

import (
	"slices"

	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Result returns the result of a parked or ended run.
func Result(s *harnessv1.Snapshot, now time.Time) *harnessv1.HarnessResult {
	return &harnessv1.HarnessResult{
		Status:    s.GetStatus(),
		Accepted:  s.GetAccepted(),
		Reason:    s.GetStopReason(),
		Answer:    s.GetAnswer(),
		Summary:   s.GetSummary(),
		TurnCount: s.GetTurnCount(),
		ToolCalls: s.GetSpent().GetToolCallsTotal(),
		Usage:     s.GetSpent().GetUsage(),
		Duration:  durationpb.New(ActiveTime(s, now)),
		Pending:   AwaitedCalls(s),
		WakeAt:    s.GetWakeAt(),

		Deliverables: workitem.Deliverables(s.GetWorkItemLedger()),
		Coverage:     s.GetCoverageLedger().GetCoverage(),
		Output:       s.GetOutput(),
		Model:        s.GetAnswerModel(),
		Quality:      s.GetQuality().GetVerdict(),
	}
}

// Ended reports whether the run has ended.
func Ended(s SharedFields) bool { return s.GetPhase() == done }

// Expired reports whether the run was deleted. No record follows.
func Expired(s RuleFields) bool { return s.GetExpireTime() != nil }

// Resumable reports whether a resume reopens an ended run: one that was cancelled, or one
// that the harness put aside as poison. With another model it also reopens one that its
// model's errors have ended.
func Resumable(s *harnessv1.Snapshot, withModel bool) bool {
	kinds := []harnessv1.TurnErrorKind{harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON}
	if withModel {
		kinds = append(kinds, harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR, harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED)
	}
	failed := s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_FAILED && slices.ContainsFunc(kinds, func(k harnessv1.TurnErrorKind) bool {
		return s.GetStopReason().GetKind() == ErrorKind(k)
	})
	return !Expired(s) && (s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_CANCELLED || failed)
}

// Event stamps an event with its turn and the limit of turns. It changes e.
func Event(s DefinitionFields, turn uint32, e *harnessv1.Event) *harnessv1.Event {
	e.TurnNumber, e.MaxTurns = turn, s.GetMaxTurns()
	return e
}

// ErrorKind returns the kind of the stop reason for a turn's error.
func ErrorKind(k harnessv1.TurnErrorKind) string {
	switch k {
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED:
		return "context_exhausted"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON:
		return KindPoison
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_ILLEGAL_TRANSITION:
		return "illegal_transition"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR:
		return "provider_error"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE:
		return KindProviderUnavailable
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED:
		return "cancelled"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_SNAPSHOT_TOO_LARGE:
		return "snapshot_too_large"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_NO_PLAN:
		return "no_plan"
	default:
		return "failed"
	}
}
