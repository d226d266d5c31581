package repair

import (
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Wake handles a message that may wake a run: a step to park or end, or an inbox
// item. It appends the step that wakes the run, fenced on the newest record, and
// acknowledges the message only when nothing is left to do for it. A conflict is
// never a reason to acknowledge: it reads again.
//
// The closing record of a deleted run, and an input that arrives after it, have
// the messages of the run erased instead.
type Wake struct {
	State WakeState
	// Message is the sequence of the message.
	Message uint64
	// KeepDeleted is how long the closing record of a deleted run is kept.
	KeepDeleted time.Duration

	view runlog.View     // of WakeChecking, and of WakeErasing for a closing record
	step *harnessv1.Step // of WakeChecking
}

// WakeState is the pending action of a Wake.
type WakeState uint8

// States of a Wake. WakeDone is final.
const (
	WakeViewing    WakeState = iota // ReadView
	WakeChecking                    // CheckAttendance
	WakeAppending                   // Append
	WakeErasing                     // Erase of all that is left
	WakeClosing                     // Erase of all but the closing record
	WakeScheduling                  // SetTimer, which has the closing record erased
	WakeDone
)

// Delays before a message is delivered again.
const (
	wakeDelay = time.Second
	// unattendedDelay: an input for the run is delivered by itself.
	unattendedDelay = time.Minute
	// erasureDelay is the least delay of an erasure; those that wait for their turn
	// are spread over erasureSpread.
	erasureDelay  = time.Second
	erasureSpread = 10 * time.Second
)

// Start returns the first action.
func (w Wake) Start() (Wake, Action) {
	w.State = WakeViewing
	return w, ReadView{Contains: w.Message}
}

// Next returns the machine after the result of its pending action, and the next
// action.
func (w Wake) Next(e Event) (Wake, Action) {
	switch w.State {
	case WakeDone:
	case WakeViewing:
		switch e := e.(type) {
		case ViewRead:
			return w.viewed(e.View)
		case NotFound: // an input that arrived after the deletion of its run
			w.State = WakeErasing
			return w, Erase{UpTo: w.Message}
		case Failure:
			return w.end(PutBack{Delay: wakeDelay, Err: e.Err})
		}
	case WakeChecking:
		switch e := e.(type) {
		case Attendance:
			if !e.Yes {
				return w.end(PutBack{Delay: unattendedDelay})
			}
			w.State = WakeAppending
			return w, Append{View: w.view, Record: &harnessv1.Record{Body: &harnessv1.Record_Step{Step: w.step}}}
		case Failure:
			return w.end(PutBack{Delay: unattendedDelay, Err: e.Err})
		}
	case WakeAppending:
		switch e := e.(type) {
		case Done:
			return w.end(Ack{})
		case Conflict:
			return w.Start()
		case Failure:
			return w.end(PutBack{Delay: wakeDelay, Err: e.Err})
		}
	case WakeErasing, WakeClosing:
		switch e := e.(type) {
		case Done:
			if w.State == WakeErasing {
				return w.end(Ack{})
			}
			w.State = WakeScheduling
			last := w.view.Newest
			return w, SetTimer{
				Version: last.Header.Version,
				At:      last.Record.GetStep().GetSnapshot().GetExpireTime().AsTime().Add(w.KeepDeleted),
			}
		case Busy:
			return w.end(PutBack{Delay: erasureDelay, Spread: erasureSpread})
		case Failure:
			return w.end(PutBack{Delay: erasureDelay, Err: e.Err})
		}
	case WakeScheduling:
		switch e := e.(type) {
		case Done:
			return w.end(Ack{})
		case Failure:
			return w.end(PutBack{Delay: erasureDelay, Err: e.Err})
		}
	}
	return w, Reject{Event: e}
}

func (w Wake) end(a Action) (Wake, Action) {
	return Wake{State: WakeDone, Message: w.Message, KeepDeleted: w.KeepDeleted}, a
}

// viewed decides on a view that contains the message.
func (w Wake) viewed(view runlog.View) (Wake, Action) {
	if view.Newest.Record == nil {
		return w.end(PutBack{Delay: wakeDelay, Err: view.Newest.Err})
	}
	w.view = view
	if runstate.Expired(view.Step.Record.GetStep().GetSnapshot()) {
		w.State = WakeClosing
		closing := view.Step.Record.GetStep().GetSnapshot()
		return w, Erase{
			Keep: view.Newest.Sequence, UpTo: newestOf(view), Profile: closing.GetQuality().GetProfile(), First: closing.GetFirstSequence(),
		}
	}
	if w.step = WakingStep(view); w.step == nil {
		return w.end(Ack{})
	}
	w.State = WakeChecking
	return w, CheckAttendance{View: view}
}

// newestOf returns the sequence of the newest message that a view shows. Nothing
// newer is erased: the name may belong to another run by then.
func newestOf(v runlog.View) uint64 { return max(v.Newest.Sequence, v.InboxSequence) }

// WakingStep returns the step that wakes the run of a view; nil if the run does
// not need it, because it is not parked or ended, or has taken in all items.
func WakingStep(view runlog.View) *harnessv1.Step {
	if !view.Quiescent() {
		return nil // the run takes the item in, or parks or ends and is woken then
	}
	last := view.Step.Record.GetStep()
	if view.InboxSequence <= last.GetSnapshot().GetInboxCursor() || runstate.Expired(last.GetSnapshot()) {
		return nil
	}
	return &harnessv1.Step{
		From:     Name,
		To:       Name,
		Snapshot: proto.CloneOf(last.GetSnapshot()),
		Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause:         harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE,
			InboxSequence: view.InboxSequence,
		}},
	}
}
