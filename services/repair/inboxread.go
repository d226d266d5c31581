package repair

import (
	"errors"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// InboxRead reads the part of the inbox that a decision takes in. For a wake the
// view must contain the trigger, so that the decision reads at least the item that
// woke the run. Between turns a stale read is harmless: the next turn, or a wake,
// takes in what it misses.
type InboxRead struct {
	State InboxReadState
	// Trigger is the entry of the step.
	Trigger runlog.Entry
}

// InboxReadState is the pending action of an InboxRead.
type InboxReadState uint8

// States of an InboxRead. InboxDone is final.
const (
	InboxLocating InboxReadState = iota // ReadView or ReadLastItem
	InboxReading                        // ReadItems
	InboxDone
)

// ErrUnknownInput is the error of an input that only a newer program understands.
// The inbox waits for one.
var ErrUnknownInput = errors.New("unknown kind of input")

// Start returns the first action.
func (r InboxRead) Start() (InboxRead, Action) {
	r.State = InboxLocating
	if r.Trigger.Record.GetStep().GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE {
		return r, ReadView{Contains: r.Trigger.Sequence}
	}
	return r, ReadLastItem{}
}

// Next returns the machine after the result of its pending action, and the next
// action.
func (r InboxRead) Next(e Event) (InboxRead, Action) {
	switch r.State {
	case InboxDone:
	case InboxLocating:
		switch e := e.(type) {
		case ViewRead:
			return r.located(e.View.InboxSequence)
		case Newest:
			return r.located(e.Sequence)
		case NotFound:
			return r.end(Finish(e))
		case Failure:
			return r.end(Finish(e))
		}
	case InboxReading:
		switch e := e.(type) {
		case Items:
			return r.end(batchOf(e.Items))
		case Failure:
			return r.end(Finish(e))
		}
	}
	return r, Reject{Event: e}
}

func (r InboxRead) end(a Action) (InboxRead, Action) {
	r.State = InboxDone
	return r, a
}

func (r InboxRead) located(last uint64) (InboxRead, Action) {
	cursor := r.Trigger.Record.GetStep().GetSnapshot().GetInboxCursor()
	if last <= cursor {
		return r.end(Observe{Batch: &harnessv1.InboxBatch{Cursor: cursor}})
	}
	r.State = InboxReading
	return r, ReadItems{After: cursor, UpTo: last}
}

// batchOf returns the items up to the first of an unknown kind. One that no gateway has sent is of no newer
// program.
func batchOf(items []*harnessv1.InboxItem) Action {
	known := 0
	for known < len(items) && (items[known].GetInput() != nil || items[known].GetUnsealed()) {
		known++
	}
	if known == 0 {
		return Finish{Err: fmt.Errorf("%w: input %s waits for a newer program", ErrUnknownInput, items[0].GetId())}
	}
	return Observe{Batch: &harnessv1.InboxBatch{Items: items[:known], Cursor: items[known-1].GetSequence()}}
}
