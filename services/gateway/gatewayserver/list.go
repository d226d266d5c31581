package gatewayserver

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

const (
	// concurrentReads is how many steps one list reads at the same time: enough to hide the
	// latency of the log, few enough to leave it to others.
	concurrentReads = 8
	// pendingBytes bounds a page of ListPending, except for the last run's calls: by
	// default a client accepts 4 MiB.
	pendingBytes = 2 << 20
)

// ListRuns lists runs, newest first.
func (s *Server) ListRuns(ctx context.Context, r *harnessv1.ListRunsRequest) (*harnessv1.ListRunsResponse, error) {
	namespace, size, from, err := gateway.CheckList(r)
	if err != nil {
		return nil, err
	}
	if err := s.runs.ready(); err != nil {
		return nil, err
	}
	s.runs.mu.RLock()
	rows, next, more := s.runs.index.List(gateway.Within(namespace, access.Namespaces(ctx)), r.GetStatuses(), r.GetAll(), from, size)
	s.runs.mu.RUnlock()
	resp := &harnessv1.ListRunsResponse{}
	if resp.Runs, err = s.readRuns(ctx, rows); err != nil {
		return nil, err
	}
	if more {
		resp.NextPageToken = next.Token()
	}
	return resp, nil
}

// ListPending lists the calls that runs wait for, oldest first.
func (s *Server) ListPending(ctx context.Context, r *harnessv1.ListPendingRequest) (*harnessv1.ListPendingResponse, error) {
	if r.GetRunId() != "" {
		run, err := gateway.Run(r.GetNamespace(), r.GetRunId())
		if err != nil {
			return nil, err
		}
		return s.pendingOf(ctx, run)
	}
	namespace, size, from, err := gateway.CheckListPending(r)
	if err != nil {
		return nil, err
	}
	if err := s.runs.ready(); err != nil {
		return nil, err
	}
	s.runs.mu.RLock()
	rows, more := s.runs.index.Awaiting(gateway.Within(namespace, access.Namespaces(ctx)), from, size)
	s.runs.mu.RUnlock()
	waiting, err := readSteps(ctx, s, rows, func(_ gateway.Row, e runlog.Entry) []*harnessv1.PendingInRun { return s.pendingIn(ctx, e) })
	if err != nil {
		return nil, err
	}
	resp := &harnessv1.ListPendingResponse{}
	size = 0
	for i, calls := range waiting {
		resp.Pending = append(resp.Pending, calls...)
		for _, c := range calls {
			size += proto.Size(c)
		}
		if i < len(rows)-1 && size > pendingBytes {
			rows, more = rows[:i+1], true
			break
		}
	}
	if more {
		resp.NextPageToken = rows[len(rows)-1].Token()
	}
	return resp, nil
}

// pendingOf lists the calls that a run and the runs below it wait for.
func (s *Server) pendingOf(ctx context.Context, run runlog.Run) (*harnessv1.ListPendingResponse, error) {
	caller := ctx
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(ctx, run)
	if err != nil {
		return nil, s.failure(caller, "read", run, err)
	}
	resp := &harnessv1.ListPendingResponse{Pending: s.pendingIn(ctx, v.Step)}
	err = s.below(ctx, v.Step, false, func(v runlog.View) error {
		if v.Step.Record.GetStep().GetTo() == runlog.Park {
			resp.Pending = append(resp.Pending, s.pendingIn(ctx, v.Step)...)
		}
		return nil
	})
	return resp, s.failure(caller, "read", run, err)
}

// pendingIn returns the calls that wait for an answer at a step.
func (s *Server) pendingIn(ctx context.Context, step runlog.Entry) []*harnessv1.PendingInRun {
	var calls []*harnessv1.PendingInRun
	for _, c := range s.whole(ctx, step.Run).calls(gateway.Answerable(step.Record.GetStep().GetSnapshot())) {
		calls = append(calls, &harnessv1.PendingInRun{Namespace: step.Run.Namespace, RunId: step.Run.ID, Call: c})
	}
	return calls
}

// readRuns reads the current steps of runs. A run that is no longer stored is left out.
func (s *Server) readRuns(ctx context.Context, rows []gateway.Row) ([]*harnessv1.Run, error) {
	runs, err := readSteps(ctx, s, rows, func(row gateway.Row, e runlog.Entry) *harnessv1.Run { return gateway.RunOf(e, row.Version) })
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if row.Deleted {
			runs[i] = gateway.Farewell(row)
		}
	}
	return slices.DeleteFunc(runs, func(r *harnessv1.Run) bool { return r == nil }), nil
}

// readSteps reads the steps of rows by their sequences and converts each immediately, so
// that a page of large steps is not held in memory. Deleted rows, and rows whose step is
// no longer stored, keep the zero T.
func readSteps[T any](ctx context.Context, s *Server, rows []gateway.Row, of func(gateway.Row, runlog.Entry) T) ([]T, error) {
	caller := ctx
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrentReads)
	made := make([]T, len(rows))
	for i, row := range rows {
		if row.Deleted {
			continue
		}
		g.Go(func() error {
			e, err := s.log.Read(ctx, row.Run, row.Sequence)
			switch {
			case errors.Is(err, runlog.ErrNotFound):
				s.runs.gone(row)
				return nil
			case err == nil && e.Record == nil:
				err = unreadable(e)
			case err == nil:
				made[i] = of(row, e)
			}
			return s.failure(caller, "read", row.Run, err)
		})
	}
	return made, g.Wait()
}
