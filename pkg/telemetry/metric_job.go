package telemetry

import (
	"context"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// JobOutcome is the result of a job's delivery to an inference worker.
type JobOutcome string

// The outcomes of jobs.
const (
	JobAnswered JobOutcome = "answered" // its text is stored
	JobFailed   JobOutcome = "failed"   // its error is stored
	JobRepeated JobOutcome = "repeated" // it has a result of another delivery, which counts
	JobGone     JobOutcome = "gone"     // its run was deleted
	JobPutBack  JobOutcome = "put_back" // something was unavailable, it panicked, or the worker stops; it is redelivered
)

// JobEnded counts the result of a delivery of a job.
func (m *Metrics) JobEnded(ctx context.Context, purpose string, outcome JobOutcome, took time.Duration) {
	if m != nil {
		m.jobDuration.record(ctx, max(took, 0).Seconds(), purpose, string(outcome))
	}
}

// JobUsed counts the tokens of a call for a job, also if its result does not become that
// of the job. A call that used none is not counted.
func (m *Metrics) JobUsed(ctx context.Context, purpose, model string, u *harnessv1.Usage) {
	if m == nil || u.GetInputTokens() == 0 && u.GetOutputTokens() == 0 {
		return
	}
	m.answered(ctx, model, u)
	m.jobTokens.add(ctx, u.GetInputTokens(), purpose, "input")
	m.jobTokens.add(ctx, u.GetOutputTokens(), purpose, "output")
}
