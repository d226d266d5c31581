package toolhostserver

import (
	"context"
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/webclient"
)

// CheckAddress sends a GET to an address that a run waits for, under the rules for addresses and
// with the credentials of the web tools. It is no call: nothing is stored.
func (s *Server) CheckAddress(ctx context.Context, req *harnessv1.CheckAddressRequest) (*harnessv1.CheckAddressResponse, error) {
	key, err := ledger.RunKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	if !webtool.Reaches(req.GetWeb().GetWeb()) {
		return nil, fault.Invalid("web", "the agent has no web tool that reads addresses")
	}
	client := s.webClient(key, req.GetWeb())
	response, err := client.Send(ctx, webclient.Request{URL: req.GetUrl()})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
			return nil, cause
		}
		return &harnessv1.CheckAddressResponse{Error: content.Line(content.Clean(client.Redact(err.Error())), 400)}, nil
	}
	return &harnessv1.CheckAddressResponse{Status: uint32(response.Status)}, nil //nolint:gosec // three digits
}
