package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// preparedRequest is a request as it is sent to its target.
type preparedRequest struct {
	request *model.Request
	target  opaque.Target
	opaque  bool // it has opaque parts
}

// prepare selects the media that are shown and the opaque parts that go back to the
// target, and loads both. It removes a schema that is not sent.
func (p *Provider) prepare(ctx context.Context, req *model.Request, name string) (*preparedRequest, error) {
	target := opaque.Target{
		Wire: p.protocol.Wire, Endpoint: p.endpoint(), Model: name, Bound: p.protocol.Bound,
		Reads: p.protocol.Reads, RefusedOf: map[string]uint64{},
	}
	for _, a := range req.Adjustments {
		if a.GetAdjustment() != harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE {
			continue
		}
		if _, of, named := strings.Cut(a.GetModel(), ":"); of == req.Model || !named {
			target.Refused = max(target.Refused, a.GetThroughMessage())
		} else {
			target.RefusedOf[of] = a.GetThroughMessage()
		}
	}
	sent := *req
	sent.Tools = withoutRefused(req)
	var takes media.Takes
	if p.protocol.Takes != nil {
		takes = p.protocol.Takes(name)
	}
	shown := media.Show(req.Messages, takes, readsBack(sent.Tools))
	selected := opaque.Select(shown, sent.Tools, target)
	rest := selected
	if !p.protocol.Schemas || req.Adjusted(harnessv1.Adjustment_ADJUSTMENT_NO_SCHEMA) != nil {
		sent.Schema = ""
	}
	sent.Messages = make([]*harnessv1.Message, len(shown))
	for i, m := range shown {
		if len(rest) > 0 && rest[0] == i {
			rest = rest[1:]
		} else {
			m = opaque.Without(m)
		}
		var err error
		if sent.Messages[i], err = loaded(ctx, req, m); err != nil {
			return nil, err
		}
	}
	return &preparedRequest{request: &sent, target: target, opaque: len(selected) > 0}, nil
}

// readsBack reports whether a request has the tool that reads messages again.
func readsBack(tools []*harnessv1.ToolSpec) bool {
	return slices.ContainsFunc(tools, func(t *harnessv1.ToolSpec) bool { return t.GetName() == view.ReadArtifact })
}

// endpoint identifies the provider and its address.
func (p *Provider) endpoint() string {
	return p.protocol.Name + " " + p.client.Address(p.protocol.Path)
}

// origin returns the origin of the response to the request. Only a wire that binds parts
// to the request needs its digest, which reads the whole conversation.
func (o *preparedRequest) origin() *harnessv1.Origin {
	origin := &harnessv1.Origin{Wire: o.target.Wire, Endpoint: o.target.Endpoint, Model: o.target.Model}
	if o.target.Bound {
		origin.RequestDigest = opaque.Digest(o.request.Messages, o.request.Tools)
	}
	return origin
}

// loaded returns a message whose opaque parts and media are inline. It shares everything
// else with m, and is m if nothing of it is in a blob.
func loaded(ctx context.Context, req *model.Request, m *harnessv1.Message) (*harnessv1.Message, error) {
	var parts []*harnessv1.Part
	for i, p := range m.GetParts() {
		whole, err := loadedPart(ctx, req, p)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", m.GetId(), err)
		}
		if whole != p && parts == nil {
			parts = slices.Clone(m.GetParts())
		}
		if whole != p {
			parts[i] = whole
		}
	}
	if parts == nil {
		return m, nil
	}
	return opaque.WithParts(m, parts, m.GetOrigin()), nil
}

// loadedPart returns a part that is inline; p if it is.
func loadedPart(ctx context.Context, req *model.Request, p *harnessv1.Part) (*harnessv1.Part, error) {
	opaqueRef, shown := p.GetOpaque().GetBlob(), p.GetMedia()
	if opaqueRef == nil && (shown == nil || shown.GetBlob() == nil || len(shown.GetData()) > 0) {
		return p, nil
	}
	whole := &harnessv1.Part{Kind: p.GetKind(), Opaque: p.GetOpaque()}
	if opaqueRef != nil {
		data, err := blob(ctx, req, opaqueRef, "opaque part")
		if err != nil {
			return nil, err
		}
		// They were valid when they were stored, and a blob is checked by its digest.
		whole.Opaque = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: data}}
	}
	if shown != nil && shown.GetBlob() != nil {
		data, err := blob(ctx, req, shown.GetBlob(), "media")
		if err != nil {
			return nil, err
		}
		whole.Kind = &harnessv1.Part_Media{Media: &harnessv1.Media{
			Type: shown.GetType(), Blob: shown.GetBlob(), Width: shown.GetWidth(), Height: shown.GetHeight(),
			Pages: shown.GetPages(), Name: shown.GetName(), Data: data,
		}}
	}
	return whole, nil
}

// blob reads a blob of the run. what names its content in errors.
func blob(ctx context.Context, req *model.Request, ref *harnessv1.BlobRef, what string) ([]byte, error) {
	if req.Blob == nil {
		return nil, fmt.Errorf("the %s is in a blob, and the request has none", what)
	}
	data, err := req.Blob(ctx, ref.GetDigest())
	if err != nil {
		return nil, Cut("read the "+what, err)
	}
	return data, nil
}

// Opaque returns bytes that go back to their provider; nil if they are not JSON, which
// no request can contain.
func Opaque(data []byte) *harnessv1.Opaque {
	if !json.Valid(data) {
		return nil
	}
	return &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: data}}
}

// refused classifies the error of a request. Opaque parts and a schema can be refused only in
// a request that has them.
func (p *Provider) refused(o *preparedRequest, err error) error {
	var status *wire.StatusError
	var failed *model.Error
	switch {
	case errors.As(err, &status):
		failed = p.protocol.Refusals.Classify(status)
		failed.Limits = Limits(status.Header)
	case !errors.As(err, &failed):
		return err
	}
	if status != nil && failed.Adjustment == harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED && p.protocol.Refusals.unexplained(status) {
		if failed.Tool = refusedTool(wire.ParseFault(status.Body), o.request.Tools); failed.Tool != "" {
			failed.Adjustment = harnessv1.Adjustment_ADJUSTMENT_NO_TOOL
			return failed
		}
	}
	if status != nil && failed.Adjustment == harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED && p.protocol.Refusals.unexplained(status) {
		if member := refusedOptional(p.protocol.Optional, status, o.request, o.target.Model); member != nil {
			leaveOut(failed, member)
			return failed
		}
	}
	switch {
	case failed.Adjustment == harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE && !o.opaque:
		failed.Adjustment = harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED
	case failed.Adjustment == harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED && o.opaque && status != nil && p.protocol.Refusals.unexplained(status):
		// Services have more texts for opaque parts that do not fit than can be known.
		failed.Adjustment = harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE
	case failed.Adjustment == harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED && o.request.Schema != "" && status != nil && p.protocol.Refusals.unexplained(status):
		// Models of one service differ in the schemas that they take, and in how they refuse one.
		failed.Adjustment = harnessv1.Adjustment_ADJUSTMENT_NO_SCHEMA
	}
	return failed
}
