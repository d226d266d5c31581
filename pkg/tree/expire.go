package tree

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Deleted is the reason kind that watchers receive for a deleted run.
const Deleted = "deleted"

// Expire returns the record that closes the log of a run permanently, to be appended
// fenced on view.Newest. It contains nothing about the run, because it is the last
// record to be removed. caller deletes the run. A run that works, or below which
// something works, is refused. Inputs that repair has not accepted
// are deleted with the run.
func Expire(view runlog.View, caller string, now time.Time, writer *harnessv1.Writer) (*harnessv1.Record, error) {
	run := view.Newest.Run
	if !view.Quiescent() {
		return nil, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ACTIVE,
			"run "+run.String()+" works; interrupt or cancel it first", "namespace", run.Namespace, "run_id", run.ID)
	}
	before := view.Step.Record.GetStep().GetSnapshot()
	if slices.ContainsFunc(before.GetChildren(), func(c *harnessv1.Child) bool { return !Idle(c) }) {
		return nil, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ACTIVE,
			"runs below "+run.String()+" work; interrupt or cancel it first", "namespace", run.Namespace, "run_id", run.ID)
	}
	s := runstate.Tombstone(before, now)
	for _, c := range before.GetChildren() { // repair deletes them
		s.Children = append(s.Children, &harnessv1.Child{RunId: c.GetRunId(), CallId: c.GetCallId(), Order: c.GetOrder()})
	}
	step := &harnessv1.Step{From: workflow.Gateway, To: runlog.End, Snapshot: s}
	var events []*harnessv1.Event
	if !runstate.Ended(s) {
		if err := runstate.ChangePhase(step, s, harnessv1.PhaseInput_PHASE_INPUT_FAIL); err != nil {
			return nil, err
		}
		s.Status = harnessv1.RunStatus_RUN_STATUS_CANCELLED
		s.StopReason = &harnessv1.StopReason{Kind: "cancelled", Message: Deleted, Details: &harnessv1.StopDetails{Turn: s.GetTurnCount()}}
		for _, e := range []*harnessv1.Event{
			{Event: &harnessv1.Event_RunCancelled{RunCancelled: &harnessv1.RunCancelled{Reason: Deleted, Caller: caller}}},
			{Event: &harnessv1.Event_SessionComplete{SessionComplete: &harnessv1.SessionComplete{Status: s.GetStatus(), Reason: s.GetStopReason()}}},
		} {
			events = append(events, runstate.Event(s, s.GetTurnCount(), e))
		}
	}
	step.Message = &harnessv1.Step_Result{Result: runstate.Result(s, now)}
	rec := &harnessv1.Record{
		Namespace:  run.Namespace,
		RunId:      run.ID,
		Schema:     runlog.Schema,
		CommitTime: timestamppb.New(now),
		Writer:     writer,
		Events:     events,
		Body:       &harnessv1.Record_Step{Step: step},
	}
	runlog.Link(rec, view.Newest)
	return rec, nil
}
