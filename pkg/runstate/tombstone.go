package runstate

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Tombstone returns the snapshot of a run that is deleted at now, without its content. It keeps the
// fields that the rest of the deletion needs, except for the children.
func Tombstone(before *harnessv1.Snapshot, now time.Time) *harnessv1.Snapshot {
	s := &harnessv1.Snapshot{
		Status: before.GetStatus(), Phase: before.GetPhase(), PausedPhase: before.GetPausedPhase(),
		StopReason: &harnessv1.StopReason{Kind: before.GetStopReason().GetKind()},
		TurnCount:  before.GetTurnCount(), MaxTurns: before.GetMaxTurns(), Segment: before.GetSegment(), Workflow: before.GetWorkflow(),
		FirstSequence: before.GetFirstSequence(), InboxCursor: before.GetInboxCursor(), CreateTime: before.GetCreateTime(),
		ExpireTime: timestamppb.New(now), Parent: before.GetParent(),
	}
	if p := before.GetQuality().GetProfile(); p != "" { // repair removes the run's words from it
		s.Quality = &harnessv1.QualityState{Profile: p}
	}
	for _, c := range before.GetBackgroundCommands() { // repair kills them
		s.BackgroundCommands = append(s.BackgroundCommands, &harnessv1.BackgroundCommand{CallId: c.GetCallId(), LedgerId: c.GetLedgerId()})
	}
	for _, c := range before.GetPendingToolCalls() {
		if Held(c) {
			s.BackgroundCommands = append(s.BackgroundCommands, &harnessv1.BackgroundCommand{CallId: c.GetCallId(), LedgerId: c.GetQuestion().GetLedgerId()})
		}
	}
	return s
}
