package stopdecision_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// at returns the state after turn n of 10.
func at(n uint32) *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_REFLECTING, TurnCount: n, MaxTurns: 10, MessageCount: 20,
		Turn: &harnessv1.TurnState{Number: n}, Workflow: workflow.Default(), Config: runstate.Resolve(nil, 0),
		RunningSince: timestamppb.New(noon.Add(-time.Minute)),
	}
}

func failed(kind harnessv1.TurnErrorKind) *harnessv1.TurnError {
	return &harnessv1.TurnError{Kind: kind, Message: "why"}
}

// decide decides twice. It fails the test if the outcomes differ or the input changed.
func decide(t *testing.T, s *harnessv1.Snapshot, turn *harnessv1.TurnComplete) *harnessv1.Outcome {
	t.Helper()
	in := &harnessv1.StepInput{Now: timestamppb.New(noon), Step: &harnessv1.Step{
		Snapshot: s, Message: &harnessv1.Step_TurnComplete{TurnComplete: turn},
	}}
	before := proto.CloneOf(in)
	out, err := stopdecision.Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := stopdecision.Decide(in)
	if err != nil || !bytes.Equal(encode(t, out), encode(t, again)) {
		t.Fatalf("the second decision differs: %v", err)
	}
	if !proto.Equal(in, before) {
		t.Fatal("the input was changed")
	}
	if err := runstate.CheckPhases(s, out.GetOutcome().GetStep()); err != nil {
		t.Fatal(err)
	}
	return out.GetOutcome()
}

func encode(t tester, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return data
}

// verdict describes where a run goes, and why.
func verdict(o *harnessv1.Outcome) string {
	step := o.GetStep()
	switch step.GetTo() {
	case runlog.End:
		r := step.GetResult()
		return fmt.Sprintf("%s %s %v", strings.TrimPrefix(r.GetStatus().String(), "RUN_STATUS_"), r.GetReason().GetKind(), r.GetAccepted())
	case runlog.Park:
		return "PARKED " + step.GetParked().GetReason().GetKind()
	}
	for _, e := range o.GetEvents() {
		if r := e.GetStopRejected(); r != nil {
			return step.GetTo() + " " + r.GetKind()
		}
	}
	return step.GetTo()
}

// TestLayers: at first every layer matches; then, one after the
// other, the layer that has decided no longer does. The first that matches decides.
func TestLayers(t *testing.T) {
	s := at(10)
	s.PendingToolCalls = []*harnessv1.PendingCall{{CallId: "c", Kind: "approval", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}}
	turn := &harnessv1.TurnComplete{TurnNumber: 10, AgentDone: true, Interrupted: true, Awaiting: true}
	for _, layer := range []struct {
		want  string
		set   func()
		clear func()
	}{
		{"CANCELLED cancelled false", func() { turn.Error = failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED) }, nil},
		{"PARKED provider_unavailable", func() { turn.Error = failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE) }, nil},
		{"FAILED context_exhausted false", func() { turn.Error = failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED) }, func() { turn.Error = nil }},
		{"repair", nil, func() { turn.Interrupted = false }},
		{"PARKED approval", nil, func() { turn.Awaiting, s.PendingToolCalls = false, nil }},
		{"DONE max_turns false", nil, func() { s.MaxTurns = 11 }},
		{"repair work_complete_not_called", nil, func() { s.WorkCompleteRetries = 3 }},
		{"DONE agent_done false", nil, func() { s.Config.Stop.Policy = harnessv1.StopPolicy_STOP_POLICY_STRICT }},
		{"repair work_complete_required_strict", nil, func() { turn.CalledWorkComplete = true }},
		{"DONE agent_done true", nil, func() { turn.AgentDone = false }},
		{"repair", nil, nil},
	} {
		if layer.set != nil {
			layer.set()
		}
		if got := verdict(decide(t, s, turn)); got != layer.want {
			t.Errorf("got %s, want %s", got, layer.want)
		}
		if layer.clear != nil {
			layer.clear()
		}
	}
}

// TestPoisonParks: a run at whose step workers died is parked three times in a row, each time for
// longer, and fails then. A turn without such an error ends the row, and an error of an executor is
// none.
func TestPoisonParks(t *testing.T) {
	poison := &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON, Message: "3 workers died", Deaths: 3}
	for _, phase := range []harnessv1.Phase{harnessv1.Phase_PHASE_EXECUTING, harnessv1.Phase_PHASE_REFLECTING} {
		s := at(3)
		for _, want := range []string{"30s", "2m0s", "8m0s"} {
			s.Phase, s.PausedPhase, s.Status = phase, harnessv1.Phase_PHASE_UNSPECIFIED, harnessv1.RunStatus_RUN_STATUS_RUNNING
			o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 3, Error: poison})
			s = o.GetStep().GetSnapshot()
			if got := s.GetWakeAt().AsTime().Sub(noon).String(); verdict(o) != "PARKED poison" || got != want || s.GetTurnCount() != 3 ||
				s.GetPausedPhase() != harnessv1.Phase_PHASE_EXECUTING || s.GetStopReason().GetMessage() != "3 workers died" {
				t.Errorf("%s: after %s, want %s: %v", phase, got, want, s)
			}
		}
		for name, other := range map[string]*harnessv1.TurnComplete{
			"a turn that ended": {TurnNumber: 3}, "no provider": {TurnNumber: 3, Error: failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE)},
		} {
			s := proto.CloneOf(s)
			s.Phase, s.PausedPhase = harnessv1.Phase_PHASE_REFLECTING, harnessv1.Phase_PHASE_UNSPECIFIED
			if n := decide(t, s, other).GetStep().GetSnapshot().GetPoisonParks(); n != 0 {
				t.Errorf("after %s there are %d parks in a row", name, n)
			}
		}
		s.Phase, s.PausedPhase = phase, harnessv1.Phase_PHASE_UNSPECIFIED
		if o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 3, Error: poison}); verdict(o) != "FAILED poison false" {
			t.Errorf("%s: after three parks: %s", phase, verdict(o))
		}
	}
}

// TestErrors: an error ends the run by its kind, in any phase.
func TestErrors(t *testing.T) {
	for _, phase := range []harnessv1.Phase{
		harnessv1.Phase_PHASE_IDLE, harnessv1.Phase_PHASE_PLANNING, harnessv1.Phase_PHASE_EXECUTING,
		harnessv1.Phase_PHASE_AWAITING_TOOL, harnessv1.Phase_PHASE_REFLECTING,
	} {
		for kind, want := range map[harnessv1.TurnErrorKind]string{
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED:             "FAILED failed false",
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED:  "FAILED context_exhausted false",
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON:             "FAILED poison false",
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_ILLEGAL_TRANSITION: "FAILED illegal_transition false",
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR:     "FAILED provider_error false",
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_SNAPSHOT_TOO_LARGE: "FAILED snapshot_too_large false",
			harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED:          "CANCELLED cancelled false",
			99: "FAILED failed false",
		} {
			s := at(3)
			s.Phase = phase
			s.PendingToolCalls = []*harnessv1.PendingCall{{CallId: "c"}}
			o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 3, Error: failed(kind)})
			got := o.GetStep().GetSnapshot()
			if verdict(o) != want || got.GetPhase() != harnessv1.Phase_PHASE_DONE || len(got.GetPendingToolCalls()) > 0 ||
				o.GetStep().GetResult().GetReason().GetMessage() != "why" {
				t.Errorf("%s in %s: %v", kind, phase, o)
			}
		}
	}
}

// TestEndOfARun: the result, the clock and the event agree.
func TestEndOfARun(t *testing.T) {
	o := decide(t, at(4), &harnessv1.TurnComplete{TurnNumber: 4, AgentDone: true, CalledWorkComplete: true})
	s, result := o.GetStep().GetSnapshot(), o.GetStep().GetResult()
	want := &harnessv1.StopReason{Kind: "agent_done", Message: s.GetStopReason().GetMessage(), Details: &harnessv1.StopDetails{Turn: 4, WorkCompleteCalled: true}}
	if !proto.Equal(s.GetStopReason(), want) || !proto.Equal(result, runstate.Result(s, noon)) {
		t.Errorf("ended with %v, result %v", s.GetStopReason(), result)
	}
	if s.GetRunningSince() != nil || result.GetDuration().AsDuration() != time.Minute || !s.GetAccepted() {
		t.Errorf("the state is %v", s)
	}
	if len(o.GetEvents()) != 1 || !proto.Equal(o.GetEvents()[0].GetSessionComplete(), &harnessv1.SessionComplete{
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true, Reason: want,
	}) {
		t.Errorf("events %v", o.GetEvents())
	}
}

// TestOpenTurnEndsWithItsRun: its number is not used again.
func TestOpenTurnEndsWithItsRun(t *testing.T) {
	s := at(3)
	s.Phase, s.Turn = harnessv1.Phase_PHASE_AWAITING_TOOL, &harnessv1.TurnState{Number: 4, Open: true}
	o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 4, Error: failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_CANCELLED)})
	if got := o.GetStep().GetSnapshot(); got.GetTurnCount() != 4 || got.GetTurn().GetOpen() {
		t.Errorf("status %v", got)
	}
}

// TestRetriesExhausted: the details of the end report it.
func TestRetriesExhausted(t *testing.T) {
	s := at(5)
	for want := range uint32(3) {
		o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 5, AgentDone: true})
		rejected := o.GetEvents()[0].GetStopRejected()
		if rejected.GetCount() != want+1 || len(o.GetAppended()) != 1 || content.Text(o.GetAppended()[0].GetContent()) != runstate.MarkGuidance(rejected.GetMessage()) {
			t.Errorf("rejection %d: %v, the model gets %v", want+1, rejected, o.GetAppended())
		}
		s.WorkCompleteRetries = o.GetStep().GetSnapshot().GetWorkCompleteRetries()
	}
	o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 5, AgentDone: true})
	if details := o.GetStep().GetResult().GetReason().GetDetails(); !details.GetWorkCompleteRetriesExhausted() || details.GetWorkCompleteCalled() || len(o.GetAppended()) > 0 {
		t.Errorf("ended with %v", o)
	}
}

// TestNotRequired: if work_complete is not required, silence ends the run as accepted.
func TestNotRequired(t *testing.T) {
	s := at(2)
	s.Config.Stop.RequireWorkComplete = proto.Bool(false)
	if got := verdict(decide(t, s, &harnessv1.TurnComplete{TurnNumber: 2, AgentDone: true})); got != "DONE agent_done true" {
		t.Errorf("got %s", got)
	}
}

// TestOutage: the run parks with a timer, in IDLE, and the turn does not count.
func TestOutage(t *testing.T) {
	s := at(2)
	s.Config.Model.OutageRetry, s.ParkVersion = durationpb.New(90*time.Second), 5
	o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 3, Error: failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE)})
	got, parked := o.GetStep().GetSnapshot(), o.GetStep().GetParked()
	if !parked.GetWakeAt().AsTime().Equal(noon.Add(90*time.Second)) || got.GetTurnCount() != 2 || got.GetParkVersion() != 0 ||
		got.GetPhase() != harnessv1.Phase_PHASE_IDLE || got.GetPausedPhase() != harnessv1.Phase_PHASE_EXECUTING || got.GetRunningSince() != nil {
		t.Errorf("parked %v at %v", parked, got)
	}
	if len(o.GetEvents()) != 1 || !proto.Equal(o.GetEvents()[0].GetSessionPause().GetReason(), parked.GetReason()) {
		t.Errorf("events %v", o.GetEvents())
	}
}

// TestOutageOfAKnownLength: the run does not ask before the provider's time, and not more often
// than the setting.
func TestOutageOfAKnownLength(t *testing.T) {
	for named, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, time.Second: 90 * time.Second} {
		s := at(2)
		s.Config.Model.OutageRetry = durationpb.New(90 * time.Second)
		down := failed(harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE)
		down.RetryAfter = durationpb.New(named)
		o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 3, Error: down})
		if got := o.GetStep().GetParked().GetWakeAt().AsTime(); !got.Equal(noon.Add(want)) {
			t.Errorf("a wait of %v wakes at %v, want %v", named, got, noon.Add(want))
		}
	}
}

// TestApprovalParksWithoutAPause in AWAITING_TOOL, with the pending calls.
func TestApprovalParksWithoutAPause(t *testing.T) {
	s := at(2)
	s.Phase = harnessv1.Phase_PHASE_AWAITING_TOOL
	s.PendingToolCalls = []*harnessv1.PendingCall{
		{CallId: "u", Class: harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN},
		{CallId: "c", Kind: "approval", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL},
	}
	o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 3, Awaiting: true})
	parked := o.GetStep().GetParked()
	if len(o.GetEvents()) > 0 || len(parked.GetPending()) != 1 || parked.GetWakeAt() != nil || o.GetStep().GetSnapshot().GetPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL {
		t.Errorf("parked %v with %v", parked, o.GetEvents())
	}
}

// TestDecideRejectsInvalidInputs with an error; it never panics.
func TestDecideRejectsInvalidInputs(t *testing.T) {
	done := at(3)
	done.Phase = harnessv1.Phase_PHASE_DONE
	for name, in := range map[string]*harnessv1.StepInput{
		"nothing":           nil,
		"no message":        {Step: &harnessv1.Step{Snapshot: at(1)}},
		"another message":   {Step: &harnessv1.Step{Snapshot: at(1), Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{}}}},
		"no snapshot":       {Step: &harnessv1.Step{Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{AgentDone: true}}}},
		"nothing waits":     {Step: &harnessv1.Step{Snapshot: at(1), Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{Awaiting: true}}}},
		"an end of the end": {Step: &harnessv1.Step{Snapshot: done, Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{AgentDone: true, CalledWorkComplete: true}}}},
	} {
		if out, err := stopdecision.Decide(in); err == nil {
			t.Errorf("%s: %v", name, out)
		}
	}
	// A state that a client sends without a workflow gets the default one.
	s := at(1)
	s.Workflow = nil
	if o := decide(t, s, &harnessv1.TurnComplete{TurnNumber: 1}); o.GetStep().GetTo() != "repair" {
		t.Errorf("goes to %q", o.GetStep().GetTo())
	}
}
