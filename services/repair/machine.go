package repair

import (
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Machine is one of Wake, Timer, Recovery and InboxRead. Start and Next are pure
// and return the machine after the call and its next action. Next takes the result
// of the pending action and is total: an event that cannot follow the action
// leads to Reject and changes nothing.
type Machine[M any] interface {
	Start() (M, Action)
	Next(Event) (M, Action)
}

// Run carries out the actions of a machine through do, and returns the one that
// ends it.
func Run[M Machine[M]](m M, do func(Action) Event) Action {
	m, action := m.Start()
	for !Final(action) {
		m, action = m.Next(do(action))
	}
	return action
}

// Action is what a machine wants done next.
type Action interface{ action() }

// Actions that produce an event.
type (
	// ReadView reads a validated view of the run that contains the message with
	// this sequence; 0 for any. ViewRead, NotFound or Failure.
	ReadView struct{ Contains uint64 }
	// ReadNewest asks the leader for the newest message of the run. Newest or Failure.
	ReadNewest struct{}
	// ReadLastItem reads the sequence of the newest inbox item. Newest or Failure.
	ReadLastItem struct{}
	// ReadItems reads the items in (After, UpTo], or the first of them. Items or
	// Failure.
	ReadItems struct{ After, UpTo uint64 }
	// ReadAckFloor reads the sequence up to which all steps to an executor are
	// acknowledged. Newest, NotFound if the executor has no consumer, or Failure.
	ReadAckFloor struct{ Executor string }
	// Redeliver has all steps to an executor from this sequence on delivered again. Done or
	// Failure.
	Redeliver struct {
		Executor string
		From     uint64
	}
	// CheckAttendance asks whether this process may wake the run. Attendance or Failure.
	CheckAttendance struct{ View runlog.View }
	// Append appends a record, without its envelope, fenced on View.Newest. Done,
	// Conflict or Failure.
	Append struct {
		View   runlog.View
		Record *harnessv1.Record
	}
	// AppendItem appends an inbox item, without its time, unless one with its id
	// follows After. Done or Failure.
	AppendItem struct {
		Item  *harnessv1.InboxItem
		After uint64
	}
	// Erase deletes the messages of the run up to UpTo, except for the record
	// Keep; 0 keeps none. Profile, if not empty, is the profile of the run, whose first
	// record has the sequence First: the words of the run are removed there. Done, Busy or Failure.
	Erase struct {
		Keep, UpTo uint64
		Profile    string
		First      uint64
	}
	// SetTimer sets the timer of a version of the run. Done or Failure.
	SetTimer struct {
		Version uint64
		At      time.Time
	}
)

// Actions that end a machine.
type (
	// Ack acknowledges the message: nothing is left to do for it.
	Ack struct{}
	// PutBack has the message delivered again after Delay, plus a random part of
	// Spread. Err is the cause; nil if nothing failed.
	PutBack struct {
		Delay, Spread time.Duration
		Err           error
	}
	// Finish ends a machine that has no message to acknowledge. Err is why it
	// failed; nil if it did not.
	Finish struct{ Err error }
	// Observe ends an InboxRead with the batch that the decision takes in.
	Observe struct{ Batch *harnessv1.InboxBatch }
	// Reject answers an event that cannot follow the pending action.
	Reject struct{ Event Event }
)

func (ReadView) action()        {}
func (ReadNewest) action()      {}
func (ReadLastItem) action()    {}
func (ReadItems) action()       {}
func (ReadAckFloor) action()    {}
func (Redeliver) action()       {}
func (CheckAttendance) action() {}
func (Append) action()          {}
func (AppendItem) action()      {}
func (Erase) action()           {}
func (SetTimer) action()        {}
func (Ack) action()             {}
func (PutBack) action()         {}
func (Finish) action()          {}
func (Observe) action()         {}
func (Reject) action()          {}

// Final reports whether an action ends its machine.
func Final(a Action) bool {
	switch a.(type) {
	case Ack, PutBack, Finish, Observe, Reject:
		return true
	}
	return false
}

// Event is the result of an action.
type Event interface{ event() }

type (
	ViewRead struct{ View runlog.View }
	// NotFound: nothing is stored of the run, or the executor has no consumer.
	NotFound struct{ Err error }
	// Newest is the sequence that was read; 0 for none.
	Newest struct{ Sequence uint64 }
	// Items are inbox items in order, never none.
	Items struct{ Items []*harnessv1.InboxItem }
	// Attendance reports whether this process may wake the run.
	Attendance struct{ Yes bool }
	// Done: the action succeeded.
	Done struct{}
	// Conflict: the append was refused, and a newer record is stored.
	Conflict struct{}
	// Busy: too much of this is done at the same time.
	Busy struct{}
	// Failure: the action failed, or its result is not known.
	Failure struct{ Err error }
)

func (ViewRead) event()   {}
func (NotFound) event()   {}
func (Newest) event()     {}
func (Items) event()      {}
func (Attendance) event() {}
func (Done) event()       {}
func (Conflict) event()   {}
func (Busy) event()       {}
func (Failure) event()    {}
