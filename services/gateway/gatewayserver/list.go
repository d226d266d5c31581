package gatewayserver

import (
	"context"
	"errors"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// maxPending bounds the calls in one ListPending.
const maxPending = 1000

// ListRuns lists runs, newest first.
func (s *Server) ListRuns(_ context.Context, r *harnessv1.ListRunsRequest) (*harnessv1.ListRunsResponse, error) {
	namespace, size, from, err := gateway.CheckList(r)
	if err != nil {
		return nil, err
	}
	if err := s.runs.ready(); err != nil {
		return nil, err
	}
	s.runs.mu.RLock()
	defer s.runs.mu.RUnlock()
	page, next, more := s.runs.index.List(namespace, r.GetStatuses(), from, size)
	resp := &harnessv1.ListRunsResponse{Runs: page}
	if more {
		resp.NextPageToken = next.Token()
	}
	return resp, nil
}

// ListPending lists what runs wait for, oldest first, at most 1,000 calls.
func (s *Server) ListPending(ctx context.Context, r *harnessv1.ListPendingRequest) (*harnessv1.ListPendingResponse, error) {
	if r.GetRunId() != "" {
		run, err := gateway.Run(r.GetNamespace(), r.GetRunId())
		if err != nil {
			return nil, err
		}
		return s.pendingOf(ctx, run)
	}
	namespace, err := gateway.Scope(r.GetNamespace())
	if err != nil {
		return nil, err
	}
	if err := s.runs.ready(); err != nil {
		return nil, err
	}
	s.runs.mu.RLock()
	resting := s.runs.index.Awaiting(namespace)
	s.runs.mu.RUnlock()
	resp := &harnessv1.ListPendingResponse{}
	for _, at := range resting {
		e, err := s.log.Read(ctx, at.Run, at.Sequence)
		if errors.Is(err, runlog.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, failure(ctx, "list what runs wait for:", at.Run, err)
		}
		addPending(resp, e)
		if len(resp.GetPending()) >= maxPending {
			resp.Pending = resp.GetPending()[:maxPending]
			break
		}
	}
	return resp, nil
}

func (s *Server) pendingOf(ctx context.Context, run runlog.Run) (*harnessv1.ListPendingResponse, error) {
	caller := ctx
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(ctx, run)
	if err != nil {
		return nil, failure(caller, "read", run, err)
	}
	resp := &harnessv1.ListPendingResponse{}
	addPending(resp, v.Step)
	return resp, nil
}

func addPending(resp *harnessv1.ListPendingResponse, e runlog.Entry) {
	for _, c := range gateway.Awaited(e.Record.GetStep().GetSnapshot()) {
		resp.Pending = append(resp.Pending, &harnessv1.PendingInRun{Namespace: e.Run.Namespace, RunId: e.Run.ID, Call: c})
	}
}
