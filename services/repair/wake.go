package repair

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Wake is the one rule for every message that can wake a run: a step to park
// or end, and an inbox item. view contains the message. It returns the step
// that wakes the run, to be appended fenced on view.Newest, or nil when there
// is nothing to do and the message is done with.
func Wake(view runlog.View) *harnessv1.Step {
	if !view.Quiescent() {
		return nil // whoever has the run will drain, or rest and wake again
	}
	resting := view.Step.Record.GetStep()
	if view.InboxSequence <= resting.GetSnapshot().GetInboxCursor() || runstate.Expired(resting.GetSnapshot()) {
		return nil
	}
	return &harnessv1.Step{
		From:     Name,
		To:       Name,
		Snapshot: proto.CloneOf(resting.GetSnapshot()),
		Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause:         harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE,
			InboxSequence: view.InboxSequence,
		}},
	}
}

// StaleTimer says that a timer belongs to a park that the run has left. A bus
// that was restarted may fire a timer once more. A view that is behind never
// makes a timer stale that is not: versions only grow, and a park that the view
// does not show yet is not over.
func StaleTimer(view runlog.View, parkVersion uint64) bool {
	step := view.Step.Record.GetStep()
	if step == nil || view.Newest.Header.Version <= parkVersion {
		return false
	}
	s := step.GetSnapshot()
	return s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || s.GetParkVersion() != parkVersion
}

// TimerAfter is the place in the inbox behind which an item of the same timer is this
// firing of it: the cursor, as for every input. While the park is not stored that set
// the timer, an item that is there is of one that was set aside, and counts as another.
func TimerAfter(view runlog.View, parkVersion uint64) uint64 {
	if view.Newest.Header.Version < parkVersion {
		return view.InboxSequence
	}
	return view.Step.Header.InboxCursor
}
