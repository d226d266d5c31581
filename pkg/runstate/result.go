package runstate

import (
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
	}
}

// Ended reports whether the run has ended.
func Ended(s *harnessv1.Snapshot) bool { return s.GetPhase() == done }

// Expired reports whether the run was deleted. No record follows.
func Expired(s *harnessv1.Snapshot) bool { return s.GetExpireTime() != nil }

// Event stamps an event with its turn and the limit of turns. It changes e.
func Event(s *harnessv1.Snapshot, turn uint32, e *harnessv1.Event) *harnessv1.Event {
	e.TurnNumber, e.MaxTurns = turn, s.GetMaxTurns()
	return e
}

// ErrorKind returns the kind of the stop reason for a turn's error.
func ErrorKind(k harnessv1.TurnErrorKind) string {
	switch k {
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED:
		return "context_exhausted"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON:
		return "poison"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_ILLEGAL_TRANSITION:
		return "illegal_transition"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR:
		return "provider_error"
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE:
		return "provider_unavailable"
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
