package inferenceserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/services/inference"
)

// errTimeout is the cause of the end of a call whose time is over.
var errTimeout = errors.New("the time limit of the job is over")

// try makes one try of a call.
type try func(ctx context.Context, c *inference.Call) (*harnessv1.JobResult, *model.Error)

// call makes the call of a job, with its tries. An error means that ctx ended.
func (s *Server) call(ctx context.Context, job *harnessv1.Job, in *input) (*harnessv1.JobResult, error) {
	attempt, err := s.prepare(ctx, job, in)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return inference.Failure(job, err.Error()), nil
	}
	began := s.cfg.Now()
	c := inference.NewCall(job, in.request.GetMessages())
	limited, cancel := context.WithTimeoutCause(ctx, inference.Timeout(job), errTimeout)
	defer cancel()
	for {
		result, failed := attempt(limited, c)
		switch {
		case failed == nil:
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case limited.Err() != nil:
			result = c.TimedOut()
		default:
			left := inference.Timeout(job) - s.cfg.Now().Sub(began)
			if wait, again := c.Fail(failed, left, s.cfg.Random()); again {
				pause(limited, wait)
				continue
			}
			result = c.GaveUp()
		}
		return c.Finish(result, s.cfg.Now().Sub(began)), nil
	}
}

// prepare returns what makes a try of a job.
func (s *Server) prepare(ctx context.Context, job *harnessv1.Job, in *input) (try, error) {
	if address, custom := inference.Target(job); custom {
		return s.custom(ctx, job, in, address)
	}
	p, err := s.provider(job.GetModel())
	if err != nil {
		return nil, fmt.Errorf("model %s: %w (on the inference worker)", job.GetModel(), err)
	}
	return s.model(job, in, p), nil
}

// cacheKey is the length of the key of the provider's cache, which is that of the turns
// of the run.
const cacheKey = 32

// model returns a try at a model, as a span.
func (s *Server) model(job *harnessv1.Job, in *input, p *provider) try {
	sent := &model.Request{
		Model: p.name, Messages: in.request.GetMessages(), Tools: in.request.GetTools(), Streaming: true,
		IdleTimeout:     2 * inference.Timeout(job), // the limit of the job comes first, so that is the reason
		MaxOutputTokens: job.GetMaxOutputTokens(),
		CacheKey:        content.Digest([]byte(runOf(job).String()))[:cacheKey],
		Job:             &model.Job{Purpose: job.GetPurpose(), Number: in.number},
		Blob:            in.blob,
		Schema:          in.request.GetAnswerSchema(),
	}
	return func(ctx context.Context, c *inference.Call) (*harnessv1.JobResult, *model.Error) {
		sent.Adjustments = c.Adjustments()
		ctx, span := s.startTry(ctx, job, sent.Messages, c.Tries()+1)
		defer span.End()
		response, err := p.provider.Complete(model.WithRun(ctx, runOf(job).String()), sent, func(model.Delta) {})
		if err != nil {
			failed := model.AsError(err)
			spans.FailTry(ctx, span, failed)
			return nil, failed
		}
		if response.Usage == nil {
			response.Usage = &harnessv1.Usage{}
		}
		response.Usage.CostMicroUsd = s.cfg.Price(job.GetModel(), response)
		result := c.Responded(response)
		s.describeResult(span, result)
		return result, nil
	}
}
