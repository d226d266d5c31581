package repairserver

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// workspace returns the workspace of a run that starts; empty if it has none. found reports that it is a
// path without links, which the tool host has found before.
func (o *observer) workspace(ctx context.Context) (path string, found bool, err error) {
	trigger := o.task.Step().GetRepairTrigger()
	if !trigger.GetParent().GetWorktree() {
		path, found = workspaceOf(trigger)
		return path, found, nil
	}
	made, err := o.makeWorktree(ctx)
	return made.GetWorkspace(), false, err
}

// workspaceOf returns the workspace that a run is started with.
func workspaceOf(trigger *harnessv1.RepairTrigger) (path string, found bool) {
	if folder := trigger.GetFolder(); folder != nil {
		return folder.GetPath(), true
	}
	return trigger.GetSpec().GetWorkspace(), false
}

// makeWorktree has the tool host make the worktree of a run that starts, once.
func (o *observer) makeWorktree(ctx context.Context) (*harnessv1.WorktreeState, error) {
	if o.worktree != nil {
		return o.worktree, nil
	}
	trigger := o.task.Step().GetRepairTrigger()
	workspace, _ := workspaceOf(trigger)
	if workspace == "" {
		return &harnessv1.WorktreeState{Problem: "the run that started it has no workspace"}, nil
	}
	r, err := o.s.toolHost.MakeWorktree(ctx, &harnessv1.MakeWorktreeRequest{
		Namespace: o.task.Run.Namespace, RunId: o.task.Run.ID, ParentRunId: trigger.GetParent().GetRunId(),
		ParentFirstSequence: trigger.GetParent().GetFirstSequence(), RootRunId: trigger.GetParent().GetRootRunId(),
		Workspace: workspace, Sandbox: trigger.GetSpec().GetConfig().GetSandbox(),
	})
	failpoint.Hit(repair.Name, "worktree")
	switch status.Code(err) {
	case codes.OK:
		o.worktree = &harnessv1.WorktreeState{Workspace: r.GetWorkspace(), Problem: r.GetProblem()}
	case codes.InvalidArgument, codes.Unimplemented: // Unimplemented: an older tool host
		o.worktree = &harnessv1.WorktreeState{Problem: status.Convert(err).Message()}
	default:
		return nil, executor.Retry("tool host", err)
	}
	return o.worktree, nil
}

// endWorktree has the tool host remove the worktree of a run that has ended, if it is not needed, or of one
// that is deleted. unchanged is true if the run has ended and left no changes there.
func (s *Server) endWorktree(ctx context.Context, e runlog.Entry) (unchanged bool, err error) {
	snapshot := e.Record.GetStep().GetSnapshot()
	if !snapshot.GetParent().GetWorktree() || !runstate.Ended(snapshot) && !runstate.Expired(snapshot) {
		return false, nil
	}
	ended, err := s.toolHost.EndWorktree(ctx, &harnessv1.EndWorktreeRequest{
		Namespace: e.Run.Namespace, RunId: e.Run.ID, Deleted: runstate.Expired(snapshot),
	})
	failpoint.Hit(repair.Name, "worktree_ended")
	if status.Code(err) == codes.Unimplemented {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("tool host: %w", err)
	}
	return runstate.Ended(snapshot) && !ended.GetKept(), nil
}
