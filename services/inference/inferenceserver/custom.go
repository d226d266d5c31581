package inferenceserver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/inference"
)

// custom returns a try at a custom InferenceService.
func (s *Server) custom(ctx context.Context, job *harnessv1.Job, in *input, address string) (try, error) {
	if s.cfg.Remote == nil {
		return nil, errors.New("no custom InferenceService can be called from here")
	}
	conn, err := s.cfg.Remote.Dial(address)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", job.GetModel(), err)
	}
	whole, err := in.forCustom(ctx)
	if err != nil {
		return nil, err
	}
	client := harnessv1.NewInferenceServiceClient(conn)
	return func(ctx context.Context, c *inference.Call) (*harnessv1.JobResult, *model.Error) {
		ctx, span := s.startTry(ctx, job, whole.GetMessages(), c.Tries()+1)
		defer span.End()
		response, err := client.Infer(ctx, &harnessv1.InferRequest{Job: job, Request: whole})
		if err != nil && remote.DeadlinePassed(ctx, err) {
			<-ctx.Done() // the service ends the call a little earlier
		}
		if err == nil && response.GetResult() == nil {
			err = errors.New("the response has no result")
		}
		if err != nil {
			failed := customFailure(address, err)
			spans.FailTry(ctx, span, failed)
			return nil, failed
		}
		result := proto.CloneOf(response.GetResult())
		s.describeResult(span, result)
		return c.Returned(result), nil
	}, nil
}

// customFailure returns the failure of a call of a custom service.
func customFailure(address string, err error) *model.Error {
	failed := &model.Error{RetryAfter: -1, Message: address + ": " + remote.Reason(err), Err: err}
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.Unknown:
		failed.Retryable = true
	case codes.Unimplemented:
		failed.Message = address + " does not serve harness.v1.InferenceService"
	default: // the same request fails again
	}
	return failed
}
