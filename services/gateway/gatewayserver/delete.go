package gatewayserver

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// DeleteRun closes the log of a parked or ended run. Repair, which receives the closing
// record like every end, deletes the rest.
func (s *Server) DeleteRun(ctx context.Context, r *harnessv1.DeleteRunRequest) (*harnessv1.DeleteRunResponse, error) {
	run, err := gateway.Run(r.GetNamespace(), r.GetRunId())
	if err != nil {
		return nil, err
	}
	existed, err := s.expire(ctx, run)
	if err != nil {
		return nil, s.failure(ctx, "delete", run, err)
	}
	return &harnessv1.DeleteRunResponse{Existed: existed}, nil
}

func (s *Server) expire(ctx context.Context, run runlog.Run) (existed bool, err error) {
	ctx, cancel := s.committing(ctx)
	defer cancel()
	view, err := s.view(ctx, run)
	if err == nil {
		err = s.checkAwaited(ctx, run, runstate.ParentOf(view.Step.Record.GetStep()))
	}
	for err == nil {
		rec, refused := tree.Expire(view, access.Name(ctx), s.now(), &harnessv1.Writer{Executor: gateway.Writer, Instance: s.instance, Nonce: s.random()})
		if refused == nil {
			if err := s.expireBelow(ctx, view); err != nil {
				return false, err
			}
			sequence, err := s.log.Append(ctx, rec)
			if err == nil {
				failpoint.Hit(gateway.Writer, "expired")
				s.runs.apply(runlog.Entry{Run: run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec})
			}
			if !errors.Is(err, runlog.ErrFenced) {
				return false, err
			}
		}
		// The run is running or has continued, or another client has deleted it, or the
		// view did not yet show the newest record.
		var newer bool
		if view, newer, err = s.fresher(ctx, run, view); err == nil && !newer {
			if refused == nil {
				refused = fault.New(codes.Aborted, harnessv1.ErrorReason_ERROR_REASON_CONFLICT, "run "+run.String()+" has changed; try again")
			}
			return false, refused
		}
	}
	if isExpired(err) {
		return true, nil
	}
	return false, err
}

// expireBelow deletes the runs below a run that is about to be deleted, each before the one that started it, so that no run is left
// without its parent. It deletes none if one of them works.
func (s *Server) expireBelow(ctx context.Context, root runlog.View) error {
	var all []runlog.View // parents first
	if err := s.below(ctx, root.Step, true, func(v runlog.View) error {
		all = append(all, v)
		_, refused := tree.Expire(v, "", s.now(), nil)
		return refused
	}); err != nil {
		return err
	}
	for _, v := range slices.Backward(all) {
		if err := s.expireChild(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// expireChild closes the log of a run below one that is about to be deleted.
func (s *Server) expireChild(ctx context.Context, view runlog.View) error {
	run := view.Newest.Run
	for {
		rec, refused := tree.Expire(view, access.Name(ctx), s.now(), &harnessv1.Writer{Executor: gateway.Writer, Instance: s.instance, Nonce: s.random()})
		if refused != nil {
			return refused
		}
		sequence, err := s.log.Append(ctx, rec)
		if err == nil {
			failpoint.Hit(gateway.Writer, "expired_child")
			s.runs.apply(runlog.Entry{Run: run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec})
		}
		if !errors.Is(err, runlog.ErrFenced) {
			return err
		}
		var newer bool
		switch view, newer, err = s.fresher(ctx, run, view); {
		case isExpired(err) || errors.Is(err, runlog.ErrNotFound):
			return nil
		case err != nil:
			return err
		case !newer:
			return fault.New(codes.Aborted, harnessv1.ErrorReason_ERROR_REASON_CONFLICT, "run "+run.String()+" has changed; try again")
		}
	}
}

// checkAwaited refuses to delete a child alone while its caller waits for it. A caller that continues it at
// the same time is sent a report that it was deleted.
func (s *Server) checkAwaited(ctx context.Context, run runlog.Run, known *harnessv1.Parent) error {
	if known == nil {
		return nil
	}
	parent := runlog.Run{Namespace: run.Namespace, ID: known.GetRunId()}
	newest, err := s.log.Newest(ctx, parent)
	if err != nil || newest == 0 {
		return err
	}
	view, err := s.viewOf(ctx, parent, newest)
	switch {
	case errors.Is(err, runlog.ErrNotFound) || isExpired(err):
		return nil
	case err != nil:
		return err
	case tree.CallWaits(known, view.Step.Record.GetStep()):
		return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ACTIVE,
			"a call of run "+parent.ID+" waits for run "+run.ID+"; cancel it first, or delete "+parent.ID, "namespace", run.Namespace, "run_id", run.ID)
	}
	return nil
}

// isExpired reports whether an error is the refusal of a deleted run.
func isExpired(err error) bool {
	var refusal *fault.Error
	return errors.As(err, &refusal) && refusal.Reason == harnessv1.ErrorReason_ERROR_REASON_RUN_EXPIRED
}
