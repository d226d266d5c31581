package agent

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// KeyJob begins the key of the observation of a job; the key of the job follows.
const KeyJob = "job:"

// jobGrace is how much longer than its time limit a decision waits for a job: the worker that
// makes the call keeps the limit.
const jobGrace = 5 * time.Second

// WaitError ends a pure decision that is made again later. It reports no failure.
type WaitError struct{ Wait *harnessv1.Wait }

// Error names what is waited for.
func (e *WaitError) Error() string { return "waits for " + strings.Join(e.Wait.GetKeys(), ", ") }

// Output returns the wait as the output of the decision.
func (e *WaitError) Output() *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Wait{Wait: e.Wait}}
}

// Jobs returns how jobs ended, in their order. Its error is a *NeedsError until all have been
// observed, and a *WaitError until all have ended. A job whose time is over counts as ended,
// with an error.
func Jobs(in *harnessv1.StepInput, requests []*harnessv1.JobRequest) ([]*harnessv1.JobState, error) {
	needed, wait := &NeedsError{}, &harnessv1.Wait{}
	states := make([]*harnessv1.JobState, len(requests))
	for i, r := range requests {
		key := KeyJob + r.GetKey()
		o := Observation(in, key)
		if o == nil {
			needed.Keys, needed.Jobs = append(needed.Keys, key), append(needed.Jobs, r)
			continue
		}
		states[i] = o.GetJob()
		if states[i].GetEnded() {
			continue
		}
		until := states[i].GetAsked().AsTime().Add(r.GetTimeout().AsDuration() + jobGrace)
		if !in.GetNow().AsTime().Before(until) {
			states[i] = proto.CloneOf(states[i])
			states[i].Ended = true
			if states[i].GetError() == "" {
				states[i].Error = fmt.Sprintf("there was no answer in %s", r.GetTimeout().AsDuration())
			}
			continue
		}
		wait.Keys = append(wait.Keys, key)
		if wait.Until == nil || until.Before(wait.GetUntil().AsTime()) {
			wait.Until = timestamppb.New(until)
		}
	}
	switch {
	case len(needed.Keys) > 0:
		return nil, needed
	case len(wait.Keys) > 0:
		return nil, &WaitError{wait}
	}
	return states, nil
}
