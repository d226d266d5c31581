package toolhostserver

import (
	"context"
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/calls"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/worktree"
)

// MakeWorktree makes the worktree of a run, once.
func (s *Server) MakeWorktree(ctx context.Context, req *harnessv1.MakeWorktreeRequest) (*harnessv1.MakeWorktreeResponse, error) {
	for field, value := range map[string]string{
		"namespace": req.GetNamespace(), "run_id": req.GetRunId(), "parent_run_id": req.GetParentRunId(), "root_run_id": req.GetRootRunId(),
	} {
		if err := ledger.CheckName(field, value); err != nil {
			return nil, err
		}
	}
	if err := workspace.CheckPath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	resp := &harnessv1.MakeWorktreeResponse{}
	err := s.detached(ctx, func(ctx context.Context) (err error) {
		if resp.Workspace, err = s.worktrees.Make(ctx, req); err != nil {
			return err
		}
		return s.places.Inherit(req.GetWorkspace(), resp.GetWorkspace())
	})
	var problem worktree.Problem
	if errors.As(err, &problem) {
		return &harnessv1.MakeWorktreeResponse{Problem: string(problem)}, nil
	}
	return resp, err
}

// EndWorktree removes a worktree that is not needed any more.
func (s *Server) EndWorktree(ctx context.Context, req *harnessv1.EndWorktreeRequest) (*harnessv1.EndWorktreeResponse, error) {
	for field, value := range map[string]string{"namespace": req.GetNamespace(), "run_id": req.GetRunId()} {
		if err := ledger.CheckName(field, value); err != nil {
			return nil, err
		}
	}
	resp := &harnessv1.EndWorktreeResponse{}
	return resp, s.detached(ctx, func(ctx context.Context) (err error) {
		resp.Kept, err = s.worktrees.End(ctx, req)
		return err
	})
}

// mergeWorktree merges the worktree of a run that a call of this run started.
func (s *Server) mergeWorktree(ctx context.Context, w *workspace.Workspace, j *calls.Job, parentSequence uint64, run string) tools.Result {
	if ledger.CheckName("run", run) != nil {
		return tools.Failed("run must be the id of a run.")
	}
	r := s.worktrees.Merge(ctx, worktree.MergeRequest{
		Namespace: j.Namespace, Parent: j.RunID, ParentSequence: parentSequence, Call: j.ID, Run: run, Workspace: w.Dir, Refuse: w.Refuse,
	})
	if r.Failed {
		return tools.Failed(r.Text)
	}
	return tools.Result{Text: r.Text, Changed: r.Changed, Interrupted: r.Interrupted}
}

// detached runs f to its end, whatever becomes of ctx, unless the host closes. It returns the cause of the
// end of ctx if that is first.
func (s *Server) detached(ctx context.Context, f func(context.Context) error) error {
	return s.calls.Detach(ctx, worktree.Limit, func(ctx context.Context) error {
		err := f(ctx)
		var problem worktree.Problem
		var field *fault.FieldError
		switch {
		case err == nil, errors.As(err, &problem), errors.As(err, &field):
			return err
		}
		return toolhost.Unavailable("the worktree: "+disk.Reason(err), err)
	})
}
