package toolhostserver

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/calls"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// CancelTools kills the running calls, forbids those that did not begin, and returns when
// no process of them is left, including those that an earlier host started. When ctx ends
// first, the killing continues. The same request can be sent again and has the same
// response.
func (s *Server) CancelTools(ctx context.Context, req *harnessv1.CancelToolsRequest) (*harnessv1.CancelToolsResponse, error) {
	targets := make([]calls.Target, len(req.GetCallIds()))
	if len(targets) == 0 && !req.GetBackground() && !req.GetServers() {
		return nil, fault.Invalid("call_ids", "must have at least one call, unless background or servers is set")
	}
	run, err := ledger.RunKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	for i, id := range req.GetCallIds() {
		if err := ledger.CheckName("call_id", id); err != nil {
			return nil, err
		}
		targets[i] = calls.Target{ID: id, Key: ledger.CallKey(run, id)}
	}
	facts := toolhost.Call{ForeignLedger: s.isForeign(req.GetLedgerId())}
	cancelled, err := s.calls.Cancel(targets, facts)
	if err != nil {
		return nil, err
	}
	if cancelled.NeedsFormer() {
		if err := s.former.kill(); err != nil {
			return nil, err
		}
	}
	if ids := req.GetCallIds(); len(ids) > 0 {
		s.servers.EndQuestions(run, ids...)
	}
	resp := &harnessv1.CancelToolsResponse{}
	if err := cancelled.Finish(ctx, resp); err != nil {
		return nil, err
	}
	if req.GetBackground() { // last: a call can start one until it is cancelled
		s.servers.EndQuestions(run)
		resp.Background, err = s.backgrounds.Kill(ctx, run, facts.ForeignLedger)
	}
	if req.GetServers() {
		s.servers.EndRun(run)
	}
	return resp, err
}
