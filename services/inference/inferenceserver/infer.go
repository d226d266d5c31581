package inferenceserver

import (
	"context"
	"fmt"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/inference"
)

// Infer makes the call that a job describes, and stores nothing. A failed call is a
// result with an error.
func (s *Server) Infer(ctx context.Context, req *harnessv1.InferRequest) (*harnessv1.InferResponse, error) {
	if err := checkInfer(req); err != nil {
		return nil, err
	}
	result, err := s.call(ctx, req.GetJob(), &input{request: req.GetRequest()})
	if err != nil {
		return nil, err
	}
	return &harnessv1.InferResponse{Result: result}, nil
}

// checkInfer returns a *fault.FieldError for a request that cannot be carried out.
func checkInfer(req *harnessv1.InferRequest) error {
	if err := inference.Check(req.GetJob()); err != nil {
		return fault.Invalid("job.model", "%v", err)
	}
	if address, custom := inference.Target(req.GetJob()); custom {
		// Two workers that are each other's target would call without an end.
		return fault.Invalid("job.model", "%s is a custom service: call its InferenceService at %s directly", req.GetJob().GetModel(), address)
	}
	if len(req.GetRequest().GetMessages()) == 0 {
		return fault.Invalid("request.messages", "is required: what the model is sent")
	}
	for i, m := range req.GetRequest().GetMessages() {
		if hasBlob(m) {
			return fault.Invalid(fmt.Sprintf("request.messages[%d]", i), "refers to a blob: send all contents inline")
		}
	}
	return nil
}

// hasBlob reports whether a part of a message that models are sent is in a blob.
func hasBlob(m *harnessv1.Message) bool {
	return slices.ContainsFunc(contentsOf(m), func(c *harnessv1.Content) bool { return c.GetBlob() != nil }) ||
		slices.ContainsFunc(m.GetParts(), func(p *harnessv1.Part) bool { return p.GetMedia().GetBlob() != nil || p.GetOpaque().GetBlob() != nil })
}
