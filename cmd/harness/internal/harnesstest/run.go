package harnesstest

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

type Run struct {
	F       *Gateway
	spec    *harnessv1.RunSpec
	Run     *harnessv1.Run
	result  *harnessv1.HarnessResult
	State   *harnessv1.Snapshot
	Deleted bool
	updates []versionedUpdate
	changed chan struct{}
}

type versionedUpdate struct {
	version uint64
	update  *harnessv1.RunUpdate
}

func (r *Run) put(version uint64, u *harnessv1.RunUpdate) {
	r.updates = append(r.updates, versionedUpdate{version, u})
	close(r.changed)
	r.changed = make(chan struct{})
}

// Event commits an event.
func (r *Run) Event(e *harnessv1.Event) {
	r.F.Mu.Lock()
	defer r.F.Mu.Unlock()
	r.Run.Version++
	e.Version, e.Id, e.Time = r.Run.Version, fmt.Sprintf("%d-0", r.Run.Version), timestamppb.New(fixed)
	if e.TurnNumber == 0 {
		e.TurnNumber = r.Run.TurnCount
	}
	e.MaxTurns = r.Run.MaxTurns
	r.put(e.Version, &harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Event{Event: e}})
}

func (r *Run) Delta(d *harnessv1.Delta) {
	r.F.Mu.Lock()
	defer r.F.Mu.Unlock()
	r.put(r.Run.Version+1, &harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Delta{Delta: d}})
}

// Rest parks or ends the run with a result.
func (r *Run) Rest(result *harnessv1.HarnessResult) {
	r.F.Mu.Lock()
	defer r.F.Mu.Unlock()
	if result.Duration == nil {
		result.Duration = durationpb.New(1500 * time.Millisecond)
	}
	r.Run.Version++
	r.Run.Status, r.Run.Reason, r.result = result.GetStatus(), result.GetReason(), result
	r.put(r.Run.Version, &harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Result{Result: result}})
}

func (r *Run) Done() {
	r.Rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true, Answer: content.Inline("the answer"), TurnCount: 1,
		Reason: &harnessv1.StopReason{Kind: "agent_done", Message: "The agent is done."},
	})
}

// Parked parks the run until each call is approved.
func (r *Run) Parked(calls ...string) {
	var pending []*harnessv1.PendingCall
	for _, id := range calls {
		pending = append(pending, AnApproval(id))
	}
	r.Waits(pending...)
}

// Waits parks the run until the calls have answers.
func (r *Run) Waits(calls ...*harnessv1.PendingCall) {
	kind := "approval"
	if len(calls) > 0 {
		kind = calls[0].GetKind()
	}
	r.Rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Pending: calls,
		Reason: &harnessv1.StopReason{Kind: kind, Message: "A call waits for an answer."},
	})
}

// Accept takes an input in; the run runs again.
func (r *Run) Accept(id, kind string) {
	r.F.Mu.Lock()
	r.Run.Status, r.Run.Reason, r.result = harnessv1.RunStatus_RUN_STATUS_RUNNING, nil, nil
	r.F.Mu.Unlock()
	r.Event(&harnessv1.Event{Event: &harnessv1.Event_InputAccepted{InputAccepted: &harnessv1.InputAccepted{ItemId: id, Kind: kind}}})
}

func (r *Run) Interrupted(id string) {
	r.Accept(id, "interrupt")
	r.Event(&harnessv1.Event{Event: &harnessv1.Event_RunInterrupted{RunInterrupted: &harnessv1.RunInterrupted{Reason: "asked"}}})
	r.Rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED,
		Reason: &harnessv1.StopReason{Kind: "interrupted", Message: "The run was interrupted."},
	})
}
