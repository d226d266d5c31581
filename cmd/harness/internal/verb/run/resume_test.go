package run_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestResumeByPrefix: resume and run --continue act on the run that a prefix names.
func TestResumeByPrefix(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("r-abcd2345", "default", harnesstest.ASpec()).Parked("c1")
	f.Took = func(r *harnesstest.Run, id string, _ proto.Message) {
		r.Accept(id, "message")
		r.Done()
	}
	for _, args := range [][]string{{"resume", "abc"}, {"run", "--continue", "abc", "go"}} {
		if got := harnesstest.Call(t, nil, "", append(args, "--server", f.Address)...); got.Code != 0 || !strings.Contains(got.Out, "the answer") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Took = func(r *harnesstest.Run, id string, input proto.Message) {
		if resume, ok := input.(*harnessv1.Resume); ok {
			if resume.GetBudgets().GetToolCalls() != 400 {
				t.Errorf("%v", resume)
			}
			r.Accept(id, "resume")
			r.Done()
		}
	}
	f.Add("parked", "default", harnesstest.ASpec()).Parked("c1")
	if got := harnesstest.Call(t, nil, "", "resume", "--server", f.Address, "parked", "--max-tool-calls", "400"); got.Code != 0 || got.Out != "the answer\n" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "--server", f.Address, "parked"); got.Code != 1 || !strings.Contains(got.Err, "harness send parked") || strings.Count(got.Err, "\n") != 1 {
		t.Errorf("an ended run: %+v", got)
	}
	f.Add("running", "default", harnesstest.ASpec())
	f.Watched = (*harnesstest.Run).Done
	if got := harnesstest.Call(t, nil, "", "resume", "--server", f.Address, "running"); got.Code != 0 {
		t.Errorf("a running run: %+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "--server", f.Address, "none"); got.Code != 1 || !strings.Contains(got.Err, "not found") {
		t.Errorf("no run: %+v", got)
	}
}

// A message that was stored before a resume resumes the run. The resume then finds it
// ended, which is a success: it has nothing left to do.
func TestAResumeThatComesAfterTheRunHasGoneOnIsNoRefusal(t *testing.T) {
	t.Parallel()
	late := func(r *harnesstest.Run, id string, _ proto.Message) {
		r.Accept("m", "user_message")
		r.Event(&harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{Goal: "and now this", Segment: 2}}})
		r.Event(&harnessv1.Event{TurnNumber: 2, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
		r.Event(&harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{ItemId: id, Kind: "resume", Reason: "the run has ended"}}})
		r.Done()
	}
	refused := func(r *harnesstest.Run, id string, _ proto.Message) {
		r.Event(&harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{ItemId: id, Kind: "resume", Reason: "the run has ended"}}})
		r.Done()
	}
	for _, test := range []struct {
		took func(*harnesstest.Run, string, proto.Message)
		args []string
		said bool
	}{
		{late, nil, false},
		{late, []string{"--max-turns", "9"}, true}, // the budget has not been taken
		{refused, nil, true},
	} {
		f := harnesstest.ServeGateway(t)
		f.Took = test.took
		f.Add("r", "default", harnesstest.ASpec()).Rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED})
		got := harnesstest.Call(t, nil, "", append([]string{"resume", "--server", f.Address, "r"}, test.args...)...)
		if got.Code != 0 || strings.Contains(got.Err, "rejected") != test.said {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
}

// A rest from before an input is not the rest that follows it.
func TestContinueWaitsForItsMessage(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Took = func(r *harnesstest.Run, id string, input proto.Message) {
		if text := input.(*harnessv1.UserMessage).GetContent().GetInline(); text != "and now this" {
			t.Errorf("%q", text)
		}
		r.Parked() // something else happened in between
		r.Accept(id, "user_message")
		r.Event(&harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{Goal: "and now this", Segment: 2}}})
		r.Done()
	}
	f.Add("r", "default", harnesstest.ASpec()).Done()
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--continue", "r", "and", "now", "this"); got.Code != 0 || got.Out != "the answer\n" {
		t.Errorf("%+v", got)
	}
}
