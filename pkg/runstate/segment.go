package runstate

import (
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// OpenSegment prepares s for the next user message: the counts of the segment
// restart at zero, and the run may take max_turns more turns. It changes s.
func OpenSegment(s *harnessv1.Snapshot) {
	spent := spentOf(s)
	spent.ToolCalls, spent.Turns = 0, 0
	spent.UsageBeforeSegment = proto.CloneOf(spent.GetUsage())
	spent.ActiveBeforeSegment = proto.CloneOf(spent.GetActive())
	spent.RunsBeforeSegment, spent.RunsRefused = spent.GetRuns(), 0
	s.Segment++
	s.MaxTurns = uint32(min(uint64(s.GetTurnCount())+uint64(s.GetConfig().GetStop().GetMaxTurns()), math.MaxUint32))
	s.ContinuationCount, s.WorkCompleteRetries, s.OutputRejections, s.AnswerSentBack = 0, 0, 0, false
	s.Output, s.OutputProblem = nil, ""
	s.Turn, s.Summary, s.Answer, s.StopReason, s.Accepted, s.WakeAt = nil, nil, nil, nil, false, nil
	s.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING
	s.DoomLoop, s.ProgressTracker = nil, nil
	if s.GetConfig().GetStall().GetEnabled() {
		s.ProgressTracker = &harnessv1.ProgressTracker{FirstMessage: s.GetMessageCount()}
	}
	if s.GetJit() != nil {
		s.Jit.Fired = slices.DeleteFunc(s.Jit.Fired, func(id string) bool { return id == limitRule })
	}
	if s.GetCompactionPlan().GetFailed() != nil { // the failures of a segment do not count in the next
		s.CompactionPlan = proto.CloneOf(s.GetCompactionPlan())
		s.CompactionPlan.Failed = nil
	}
	s.Hooks, s.RejectedKind, s.RejectedCount, s.PoisonParks = nil, "", 0, 0
}

// limitRule is the just-in-time rule that fires once a segment.
const limitRule = "approaching_turn_limit"

// EndTurn ends and counts the turn. It changes s.
func EndTurn(s *harnessv1.Snapshot) {
	s.TurnCount++
	spentOf(s).Turns++
	if s.Turn == nil {
		s.Turn = &harnessv1.TurnState{}
	}
	s.Turn.Open = false
}

// CountCalls counts tool calls. It changes s.
func CountCalls(s *harnessv1.Snapshot, n int) {
	spent := spentOf(s)
	spent.ToolCalls += uint32(n)      //nolint:gosec // bounded by a response
	spent.ToolCallsTotal += uint32(n) //nolint:gosec // bounded by a response
}
