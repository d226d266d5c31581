package repair

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Recovery handles a run that has not moved between two sweeps. A step that was
// acknowledged and has no successor is lost: it is committed again and reported. If a
// worker has begun it, so that journal entries follow, the bus has lost what came after
// them: the same step is delivered again, and another worker continues from its journal.
// A step to an executor without a consumer waits; that is reported once, by a
// record that is then the newest.
type Recovery struct {
	State RecoveryState
	// Step is the sequence of the run's step in both sweeps.
	Step uint64

	view runlog.View // of RecoveryReading
}

// RecoveryState is the pending action of a Recovery.
type RecoveryState uint8

// States of a Recovery. RecoveryDone is final.
const (
	RecoveryViewing   RecoveryState = iota // ReadView
	RecoveryReading                        // ReadAckFloor
	RecoveryAppending                      // Append
	RecoveryAsking                         // ReadNewest, of the leader
	RecoveryComparing                      // ReadView, up to the newest record of the leader
	RecoveryResetting                      // Redeliver
	RecoveryDone
)

// Start returns the first action.
func (r Recovery) Start() (Recovery, Action) {
	r.State = RecoveryViewing
	return r, ReadView{Contains: r.Step}
}

// Next returns the machine after the result of its pending action, and the next
// action.
func (r Recovery) Next(e Event) (Recovery, Action) {
	switch r.State {
	case RecoveryDone:
	case RecoveryViewing:
		switch e := e.(type) {
		case ViewRead:
			if e.View.Newest.Record == nil || e.View.Step.Record == nil {
				return r.end(nil)
			}
			r.State, r.view = RecoveryReading, e.View
			return r, ReadAckFloor{Executor: e.View.Step.Record.GetStep().GetTo()}
		case NotFound:
			return r.end(e.Err)
		case Failure:
			return r.end(e.Err)
		}
	case RecoveryReading:
		switch e := e.(type) {
		case Newest:
			return r.append(consumer{Exists: true, AckFloor: e.Sequence})
		case NotFound:
			return r.append(consumer{})
		case Failure:
			return r.end(e.Err)
		}
	case RecoveryAsking:
		switch e := e.(type) {
		case Newest:
			r.State = RecoveryComparing
			return r, ReadView{Contains: e.Sequence}
		case Failure:
			return r.end(e.Err)
		}
	case RecoveryComparing:
		switch e := e.(type) {
		case ViewRead:
			if e.View.Newest.Sequence != r.view.Newest.Sequence {
				return r.end(nil) // the run has moved
			}
			r.State = RecoveryResetting
			return r, Redeliver{Executor: r.view.Step.Record.GetStep().GetTo(), From: r.view.Step.Sequence}
		case NotFound:
			return r.end(e.Err)
		case Failure:
			return r.end(e.Err)
		}
	case RecoveryResetting:
		switch e := e.(type) {
		case Done:
			return r.end(nil)
		case Failure:
			return r.end(e.Err)
		}
	case RecoveryAppending:
		switch e := e.(type) {
		case Done, Conflict: // a conflict: the run has moved
			return r.end(nil)
		case Failure:
			return r.end(e.Err)
		}
	}
	return r, Reject{Event: e}
}

func (r Recovery) end(err error) (Recovery, Action) {
	return Recovery{State: RecoveryDone, Step: r.Step}, Finish{Err: err}
}

func (r Recovery) append(at consumer) (Recovery, Action) {
	rec := recoveringRecord(r.view, at)
	if rec == nil && begun(r.view) && at.Exists && r.view.Step.Sequence <= at.AckFloor {
		r.State = RecoveryAsking
		return r, ReadNewest{}
	}
	if rec == nil {
		return r.end(nil)
	}
	r.State = RecoveryAppending
	return r, Append{View: r.view, Record: rec}
}

// begun reports whether a worker has begun the step of a view.
func begun(view runlog.View) bool {
	return view.Newest.Sequence != view.Step.Sequence && view.Newest.Record.GetJournal() != nil
}

// consumer is the position of an executor's consumer.
type consumer struct {
	// Exists is false if the executor has no consumer.
	Exists bool
	// AckFloor is the sequence up to which all steps to the executor are acknowledged.
	AckFloor uint64
}

// lostStep is the error that reports a lost step.
const lostStep = "the step was acknowledged and nothing followed; it is handed over again"

// recoveringRecord returns the record that recovers the run of a view, without its
// envelope; nil if the run is in order. at is the position of the consumer of the
// step's executor, read after the view.
func recoveringRecord(view runlog.View, at consumer) *harnessv1.Record {
	step := view.Step.Record.GetStep()
	if step == nil || view.Newest.Sequence != view.Step.Sequence || runlog.IsRest(step.GetTo()) {
		return nil
	}
	s := step.GetSnapshot()
	switch {
	case !at.Exists:
		d := runstate.NewEntry(&harnessv1.Journal{Entry: &harnessv1.Journal_ExecutorAbsent{
			ExecutorAbsent: &harnessv1.ExecutorAbsent{Executor: step.GetTo()},
		}}, s, s.GetTurnCount())
		d.Emit(event.ExecutorMissing(step.GetTo()))
		return &harnessv1.Record{Events: d.Events, Body: &harnessv1.Record_Journal{Journal: d.Entry}}
	case view.Step.Sequence <= at.AckFloor:
		again := proto.CloneOf(step)
		again.PhaseChanges, again.Observed = nil, nil // of the first commit
		d := runstate.NewEntry(nil, s, s.GetTurnCount())
		d.Emit(event.ExecutorError(step.GetTo(), lostStep, 0))
		return &harnessv1.Record{Events: d.Events, Body: &harnessv1.Record_Step{Step: again}}
	}
	return nil
}
