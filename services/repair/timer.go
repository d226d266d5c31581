package repair

import (
	"strconv"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Timer handles a timer that fired: it appends an inbox item, whose id names the
// park, so that a timer that is delivered twice has one effect. The timer of a
// deleted run has its closing record erased. One that fails fires again.
type Timer struct {
	State TimerState
	// ParkVersion is the version that the timer was set for.
	ParkVersion uint64
}

// TimerState is the pending action of a Timer.
type TimerState uint8

// States of a Timer. TimerDone is final.
const (
	TimerViewing    TimerState = iota // ReadView
	TimerConfirming                   // ReadNewest
	TimerStoring                      // AppendItem
	TimerErasing                      // Erase
	TimerDone
)

// Start returns the first action.
func (t Timer) Start() (Timer, Action) {
	t.State = TimerViewing
	return t, ReadView{}
}

// Next returns the machine after the result of its pending action, and the next
// action.
func (t Timer) Next(e Event) (Timer, Action) {
	switch t.State {
	case TimerDone:
	case TimerViewing:
		switch e := e.(type) {
		case ViewRead:
			return t.viewed(e.View)
		case NotFound: // the run is gone, or the replica is stale: the leader knows
			t.State = TimerConfirming
			return t, ReadNewest{}
		case Failure:
			return t.end(e.Err)
		}
	case TimerConfirming:
		switch e := e.(type) {
		case Newest:
			if e.Sequence == 0 {
				return t.end(nil)
			}
			return t.end(runlog.ErrNotFound)
		case Failure:
			return t.end(e.Err)
		}
	case TimerStoring, TimerErasing:
		switch e := e.(type) {
		case Done:
			return t.end(nil)
		case Failure:
			return t.end(e.Err)
		}
	}
	return t, Reject{Event: e}
}

func (t Timer) end(err error) (Timer, Action) {
	t.State = TimerDone
	return t, Finish{Err: err}
}

func (t Timer) viewed(view runlog.View) (Timer, Action) {
	if runstate.Expired(view.Step.Record.GetStep().GetSnapshot()) && t.ParkVersion == view.Step.Header.Version {
		t.State = TimerErasing
		return t, Erase{UpTo: newestOf(view)}
	}
	if StaleTimer(view, t.ParkVersion) {
		return t.end(nil)
	}
	t.State = TimerStoring
	return t, AppendItem{Item: TimerItem(t.ParkVersion), After: timerAfter(view, t.ParkVersion)}
}

// TimerItem returns the inbox item of a fired timer, without its time.
func TimerItem(parkVersion uint64) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{
		Id:    "timer " + strconv.FormatUint(parkVersion, 10), // request ids have no space
		Input: &harnessv1.InboxItem_TimerFired{TimerFired: &harnessv1.TimerFired{ParkVersion: parkVersion}},
	}
}

// StaleTimer reports whether the run has left the park of a timer. A restarted bus
// may fire a timer again. A stale view never makes a valid timer stale: versions
// only grow, and a park that the view does not show yet is not over.
func StaleTimer(view runlog.View, parkVersion uint64) bool {
	step := view.Step.Record.GetStep()
	if step == nil || view.Newest.Header.Version <= parkVersion {
		return false
	}
	s := step.GetSnapshot()
	return s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || s.GetParkVersion() != parkVersion
}

// timerAfter returns the place in the inbox after which an item with the timer's
// id is from this firing: the cursor, as for every input. If the park is not
// stored yet, such an item is from the timer of a park that was never committed,
// and does not count.
func timerAfter(view runlog.View, parkVersion uint64) uint64 {
	if view.Newest.Header.Version < parkVersion {
		return view.InboxSequence
	}
	return view.Step.Header.InboxCursor
}
