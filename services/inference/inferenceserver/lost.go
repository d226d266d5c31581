package inferenceserver

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// lostCalls are the calls of a job whose worker died or stopped before it stored a result. The
// provider has been paid for them, and nothing reports their usage.
type lostCalls struct {
	count uint32
	usage *harnessv1.Usage // of all of them
}

// addTo counts the lost calls in a result.
func (l lostCalls) addTo(result *harnessv1.JobResult) {
	if l.count == 0 {
		return
	}
	runstate.SumUsage(result.Usage, l.usage)
	result.LostCalls = l.count
}

// lostCalls records the call that a repeated delivery is about to make, and returns the calls of the
// deliveries before. The first delivery records nothing, so a call that is not repeated costs no write; it
// counts as one that was made. A delivery that was put back before its call has no record.
func (w *worker) lostCalls(ctx context.Context, job *harnessv1.Job, in *input, repeated bool) (lostCalls, error) {
	if !repeated {
		return lostCalls{}, nil
	}
	one := w.requestUsage(job, in)
	lost := lostCalls{usage: &harnessv1.Usage{}}
	for n := uint64(2); ; n++ {
		lost.count++
		runstate.SumUsage(lost.usage, one)
		recorded, err := w.recordCall(ctx, job, n, one)
		if err != nil || recorded {
			return lost, err
		}
	}
}

// recordCall records the nth call of a job. It reports false if another delivery has.
func (w *worker) recordCall(ctx context.Context, job *harnessv1.Job, n uint64, usage *harnessv1.Usage) (recorded bool, err error) {
	run, key := runOf(job), runlog.CallKey(job.GetKey(), n)
	data, err := w.cfg.Log.BlobAs(ctx, run, key)
	if err != nil {
		return false, fmt.Errorf("count the calls before: %w", err)
	}
	if data != nil {
		return false, nil
	}
	if data, err = proto.Marshal(usage); err != nil {
		return false, fmt.Errorf("encode the usage: %w", err)
	}
	if recorded, err = w.cfg.Log.PutBlobAs(ctx, run, job.GetFirstSequence(), key, data); err != nil {
		return false, fmt.Errorf("record the call: %w", err)
	}
	return recorded, nil
}

// requestUsage returns the least usage of a call: its request.
func (s *Server) requestUsage(job *harnessv1.Job, in *input) *harnessv1.Usage {
	count := 0
	for _, m := range in.request.GetMessages() {
		count += tokens.Message(job.GetModel(), m)
	}
	for _, t := range in.request.GetTools() {
		count += tokens.Tool(job.GetModel(), t)
	}
	usage := &harnessv1.Usage{InputTokens: uint64(count)}
	usage.CostMicroUsd = s.cfg.Price(job.GetModel(), &model.Response{Usage: usage})
	return usage
}
