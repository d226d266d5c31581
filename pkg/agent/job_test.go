package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var morning = time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)

func jobRequest(key string, timeout time.Duration) *harnessv1.JobRequest {
	return &harnessv1.JobRequest{Key: key, Timeout: durationpb.New(timeout)}
}

func jobSeen(key string, state *harnessv1.JobState) *harnessv1.Observation {
	return &harnessv1.Observation{Key: agent.KeyJob + key, Value: &harnessv1.Observation_Job{Job: state}}
}

func asked(before time.Duration) *harnessv1.JobState {
	return &harnessv1.JobState{Asked: timestamppb.New(morning.Add(-before))}
}

// TestJobsAreNeededThenAwaited: what was not observed is needed with its request, then open jobs are
// waited for until the time of the first is over, then the results have the order of the requests.
func TestJobsAreNeededThenAwaited(t *testing.T) {
	requests := []*harnessv1.JobRequest{jobRequest("slow", time.Minute), jobRequest("done", 20*time.Second), jobRequest("fast", 20*time.Second)}
	in := &harnessv1.StepInput{Now: timestamppb.New(morning), Observed: []*harnessv1.Observation{jobSeen("slow", asked(0))}}

	states, err := agent.Jobs(in, requests)
	var needed *agent.NeedsError
	if !errors.As(err, &needed) || states != nil {
		t.Fatalf("%v, %v", states, err)
	}
	if needs := needed.Output().GetNeeds(); !slices.Equal(needs.GetKeys(), []string{"job:done", "job:fast"}) ||
		len(needs.GetJobs()) != 2 || needs.GetJobs()[0] != requests[1] || needs.GetJobs()[1] != requests[2] {
		t.Fatalf("needs %v", needs)
	}

	result := &harnessv1.JobState{Ended: true, Text: "{}"}
	in.Observed = append(in.Observed, jobSeen("fast", asked(time.Second)), jobSeen("done", result))
	states, err = agent.Jobs(in, requests)
	var waits *agent.WaitError
	if !errors.As(err, &waits) || states != nil {
		t.Fatalf("%v, %v", states, err)
	}
	wait := waits.Output().GetWait()
	if !slices.Equal(wait.GetKeys(), []string{"job:slow", "job:fast"}) || !wait.GetUntil().AsTime().Equal(morning.Add(24*time.Second)) {
		t.Errorf("waits for %v until %s", wait.GetKeys(), wait.GetUntil().AsTime())
	}
	if !strings.Contains(waits.Error(), "job:slow, job:fast") {
		t.Errorf("%v", waits)
	}

	slow, fast := &harnessv1.JobState{Ended: true, Text: "slow"}, &harnessv1.JobState{Ended: true, Error: "no answer"}
	in.Observed = []*harnessv1.Observation{jobSeen("fast", fast), jobSeen("slow", slow), jobSeen("done", result)}
	states, err = agent.Jobs(in, requests)
	if err != nil || !slices.EqualFunc(states, []*harnessv1.JobState{slow, result, fast}, func(a, b *harnessv1.JobState) bool { return proto.Equal(a, b) }) {
		t.Errorf("%v, %v", states, err)
	}
}

// TestJobsEndWithTheirTime: from 5 s after its time limit on, a job counts as ended with an error. What was observed
// stays unchanged.
func TestJobsEndWithTheirTime(t *testing.T) {
	request := []*harnessv1.JobRequest{jobRequest("k", 20*time.Second)}
	for before, over := range map[time.Duration]bool{25*time.Second - 1: false, 25 * time.Second: true, time.Hour: true} {
		in := &harnessv1.StepInput{Now: timestamppb.New(morning), Observed: []*harnessv1.Observation{jobSeen("k", asked(before))}}
		unchanged := proto.CloneOf(in)
		states, err := agent.Jobs(in, request)
		if !proto.Equal(in, unchanged) {
			t.Errorf("after %s: the input was changed", before)
		}
		if over != (err == nil) {
			t.Errorf("after %s: %v", before, err)
			continue
		}
		if over && (!states[0].GetEnded() || !strings.Contains(states[0].GetError(), "no answer in 20s")) {
			t.Errorf("after %s: %v", before, states)
		}
	}
	lost := asked(time.Hour)
	lost.Error, lost.Usage = "no worker", &harnessv1.Usage{InputTokens: 9}
	states, err := agent.Jobs(&harnessv1.StepInput{Now: timestamppb.New(morning), Observed: []*harnessv1.Observation{jobSeen("k", lost)}}, request)
	if err != nil || states[0].GetError() != "no worker" || states[0].GetUsage().GetInputTokens() != 9 {
		t.Errorf("%v, %v: want the reason and the usage so far", states, err)
	}
	if states, err := agent.Jobs(&harnessv1.StepInput{}, nil); err != nil || len(states) != 0 {
		t.Errorf("without requests: %v, %v", states, err)
	}
}
