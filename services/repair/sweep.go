package repair

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// lostStep is what a step is reported with that nobody has and nobody will get.
const lostStep = "the step was acknowledged and nothing followed; it is handed over again"

// Consumer is how far the consumer of an executor has come.
type Consumer struct {
	// Exists says that there is one.
	Exists bool
	// AckFloor is the sequence up to which all steps to the executor are acknowledged.
	AckFloor uint64
}

// Sweep is the rule for a run that has stood still. view is a look at it, at is
// how far the consumer of the executor stands that its newest step is addressed
// to, asked for after the look. It returns what is to be appended fenced on
// view.Newest, without its envelope, or nil when the run is in order.
//
// A step that is acknowledged and has no successor is lost: it is committed once
// more, as it was, and reported. A step to an executor that has no consumer waits;
// that is reported once, by a record that is then the newest.
func Sweep(view runlog.View, at Consumer) *harnessv1.Record {
	step := view.Step.Record.GetStep()
	if step == nil || view.Newest.Sequence != view.Step.Sequence || runlog.IsRest(step.GetTo()) {
		return nil
	}
	s := step.GetSnapshot()
	report := func(e *harnessv1.Event) []*harnessv1.Event {
		return []*harnessv1.Event{runstate.Event(s, s.GetTurnCount(), e)}
	}
	switch {
	case !at.Exists:
		return &harnessv1.Record{
			Events: report(&harnessv1.Event{Event: &harnessv1.Event_ExecutorMissing{ExecutorMissing: &harnessv1.ExecutorMissing{Executor: step.GetTo()}}}),
			Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ExecutorAbsent{
				ExecutorAbsent: &harnessv1.ExecutorAbsent{Executor: step.GetTo()},
			}}},
		}
	case view.Step.Sequence <= at.AckFloor:
		again := proto.CloneOf(step)
		again.PhaseChanges, again.Observed = nil, nil // they belong to the first
		return &harnessv1.Record{
			Events: report(&harnessv1.Event{Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{Executor: step.GetTo(), Error: lostStep}}}),
			Body:   &harnessv1.Record_Step{Step: again},
		}
	}
	return nil
}
