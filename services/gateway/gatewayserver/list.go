package gatewayserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

const (
	// followPause is the wait before the runs are followed again after a failure.
	followPause = time.Second
	// maxPending bounds the calls in one ListPending.
	maxPending = 1000
)

// runs is the index of all runs, shared by all calls.
type runs struct {
	mu       sync.RWMutex
	index    gateway.Index
	complete bool
	// broken is why the runs are not being followed.
	broken error
}

func (r *runs) apply(e runlog.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index.Apply(e)
}

func (r *runs) saw(run runlog.Run, sequence uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index.Saw(run, sequence)
}

func (r *runs) seen(run runlog.Run) uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.index.Seen(run)
}

func (r *runs) set(complete bool, broken error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete, r.broken = complete, broken
}

func (r *runs) ready() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch {
	case r.complete:
		return nil
	case r.broken != nil:
		return because(r.broken, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			"the list of runs cannot be made: the log cannot be reached; try again")
	}
	return fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
		"the list of runs is still being made; try again in a moment")
}

// follow keeps the index up to date until ctx ends.
func (s *Server) follow(ctx context.Context) {
	for {
		err := s.log.Runs(ctx, func() { s.runs.set(true, nil) }, s.runs.apply)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the log ended the list of runs")
		}
		s.runs.set(false, err)
		s.logger.Warn("runs are not being followed; trying again", "error", err, "wait", followPause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPause):
		}
	}
}

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
