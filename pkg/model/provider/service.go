package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// wire is the client of a service on one of its wires.
type wire interface {
	model.Provider
	io.Closer
	Model(ctx context.Context) (string, error)
	Forget()
}

// service is a model.Provider that picks a wire for each request. It is safe for
// concurrent use.
type service struct {
	catalogue *catalogue.Catalogue
	described *catalogue.Provider
	access    *access
	wires     map[catalogue.Wire]wire
}

// adjustments are the adjustments that switch to a wire.
var adjustments = map[harnessv1.Adjustment]catalogue.Wire{
	harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT:      catalogue.WireChat,
	harnessv1.Adjustment_ADJUSTMENT_WIRE_RESPONSES: catalogue.WireResponses,
}

// Complete makes one try on the wire of the request. An error proposes another wire
// only if the provider has it and no wire was proposed before.
func (s *service) Complete(ctx context.Context, req *model.Request, delta func(model.Delta)) (*model.Response, error) {
	first := s.wires[s.described.Wires[0]]
	unnamed := req.Model == ""
	if unnamed {
		name, err := first.Model(ctx)
		if err != nil {
			return nil, s.failure(req, err)
		}
		named := *req
		named.Model, req = name, &named
	}
	used := s.wires[s.wire(req)]
	if efforts := Efforts(s.catalogue, s.ref(req)); efforts != nil && len(efforts) == 0 && req.Effort != harnessv1.Effort_EFFORT_UNSPECIFIED {
		plain := *req
		plain.Effort, req = harnessv1.Effort_EFFORT_UNSPECIFIED, &plain
	}
	resp, err := used.Complete(ctx, req, delta)
	if err != nil {
		failed := s.failure(req, err)
		if unnamed && failed.Status == http.StatusNotFound {
			first.Forget()
		}
		return nil, failed
	}
	estimate(req, resp)
	return resp, nil
}

// Close closes idle connections. The provider can still be used.
func (s *service) Close() error {
	var errs []error
	for _, w := range s.wires {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

func (s *service) ref(req *model.Request) string { return s.described.Name + ":" + req.Model }

// wire returns the wire of a request: the last one that a refusal has asked for, or that
// of the model.
func (s *service) wire(req *model.Request) catalogue.Wire {
	for _, a := range slices.Backward(req.Adjustments) {
		if w := adjustments[a.GetAdjustment()]; s.wires[w] != nil {
			return w
		}
	}
	return usualWire(s.described, s.catalogue.Lookup(s.ref(req)))
}

// usualWire returns the wire of a model without adjustments.
func usualWire(p *catalogue.Provider, e catalogue.Entry) catalogue.Wire {
	if p.Speaks(e.Wire) {
		return e.Wire
	}
	return p.Wires[0]
}

// failure checks the proposal of an error, and removes secrets from its message.
func (s *service) failure(req *model.Request, err error) *model.Error {
	failed := model.AsError(err)
	if other := adjustments[failed.Adjustment]; other != "" && (s.wires[other] == nil || switched(req)) {
		failed.Adjustment = harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED
	}
	secrets := s.access.secrets
	if s.access.tokens != nil {
		secrets = append(slices.Clip(secrets), s.access.tokens.last())
	}
	failed.Message = adapter.Clean(failed.Message, secrets...)
	return failed
}

// switched reports whether a refusal has already switched the wire of a request.
func switched(req *model.Request) bool {
	return slices.ContainsFunc(req.Adjustments, func(a *harnessv1.ModelAdjustment) bool { return adjustments[a.GetAdjustment()] != "" })
}
