package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// outgoing is a request as it is sent to its target.
type outgoing struct {
	request *model.Request
	target  opaque.Target
	opaque  bool // it has opaque parts
}

// outgoing selects the opaque parts that go back to the target, and loads them.
func (p *Provider) outgoing(ctx context.Context, req *model.Request, name string) (*outgoing, error) {
	target := opaque.Target{
		Wire: p.protocol.Wire, Endpoint: p.endpoint(), Model: name, Bound: p.protocol.Bound,
		Refused: req.Adjusted(harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE).GetThroughMessage(),
	}
	if p.protocol.Reads != nil {
		target.Reads = p.protocol.Reads(name)
	}
	sent := *req
	sent.Messages = make([]*harnessv1.Message, len(req.Messages))
	for i, m := range req.Messages {
		sent.Messages[i] = opaque.Without(m)
	}
	selected := opaque.Select(req.Messages, req.Tools, target)
	for _, i := range selected {
		m, err := loaded(ctx, req, req.Messages[i])
		if err != nil {
			return nil, err
		}
		sent.Messages[i] = m
	}
	return &outgoing{request: &sent, target: target, opaque: len(selected) > 0}, nil
}

// endpoint identifies the provider and its address.
func (p *Provider) endpoint() string {
	return p.protocol.Name + " " + p.client.Address(p.protocol.Path)
}

// origin returns the origin of the response to the request.
func (o *outgoing) origin() *harnessv1.Origin {
	return &harnessv1.Origin{
		Wire: o.target.Wire, Endpoint: o.target.Endpoint, Model: o.target.Model,
		RequestDigest: opaque.Digest(o.request.Messages, o.request.Tools),
	}
}

// loaded returns a message whose opaque parts are inline.
func loaded(ctx context.Context, req *model.Request, m *harnessv1.Message) (*harnessv1.Message, error) {
	parts := make([]*harnessv1.Part, len(m.GetParts()))
	for i, p := range m.GetParts() {
		parts[i] = p
		ref := p.GetOpaque().GetBlob()
		if ref == nil {
			continue
		}
		if req.Blob == nil {
			return nil, fmt.Errorf("message %d: its opaque part is in a blob, and the request has none", m.GetId())
		}
		data, err := req.Blob(ctx, ref.GetDigest())
		if err != nil {
			return nil, Cut(fmt.Sprintf("message %d: read its opaque part", m.GetId()), err)
		}
		parts[i] = &harnessv1.Part{Kind: p.GetKind(), Opaque: Opaque(data)}
	}
	return opaque.WithParts(m, parts, m.GetOrigin()), nil
}

// Opaque returns bytes that go back to their provider; nil if they are not JSON, which
// no request can contain.
func Opaque(data []byte) *harnessv1.Opaque {
	if !json.Valid(data) {
		return nil
	}
	return &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: data}}
}

// refused classifies the error of a request. Opaque parts can be refused only in a
// request that has some.
func (p *Provider) refused(o *outgoing, err error) error {
	var status *wire.StatusError
	var failed *model.Error
	switch {
	case errors.As(err, &status):
		failed = p.protocol.Refusals.Classify(status)
		failed.Limits = Limits(status.Header)
	case !errors.As(err, &failed):
		return err
	}
	if failed.Adjustment == harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE && !o.opaque {
		failed.Adjustment = harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED
	}
	return failed
}
