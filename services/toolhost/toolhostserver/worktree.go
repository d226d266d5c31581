package toolhostserver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// MakeWorktree makes the worktree of a run, once.
func (s *Server) MakeWorktree(ctx context.Context, req *harnessv1.MakeWorktreeRequest) (*harnessv1.MakeWorktreeResponse, error) {
	for field, value := range map[string]string{
		"namespace": req.GetNamespace(), "run_id": req.GetRunId(), "parent_run_id": req.GetParentRunId(), "root_run_id": req.GetRootRunId(),
	} {
		if err := checkName(field, value); err != nil {
			return nil, err
		}
	}
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	folder, resp := s.worktrees.folder(req.GetNamespace(), req.GetRunId()), &harnessv1.MakeWorktreeResponse{}
	err := s.detached(ctx, func(ctx context.Context) error {
		unlock, err := s.worktrees.lock(ctx, folder)
		if err != nil {
			return err
		}
		defer unlock()
		record, err := s.worktrees.read(folder)
		if err != nil {
			return err
		}
		wanted := &worktreeRecord{
			Namespace: req.GetNamespace(), Run: req.GetRunId(), Parent: req.GetParentRunId(), ParentSequence: req.GetParentFirstSequence(),
			Root: req.GetRootRunId(), Workspace: filepath.Clean(req.GetWorkspace()), Hidden: req.GetSandbox().GetHide(),
		}
		switch {
		case record == nil:
			record = wanted
			if err := s.worktrees.store(folder, record); err != nil {
				return err
			}
			failpoint.Hit(role, "worktree_recorded")
		case record.Parent != wanted.Parent || record.ParentSequence != wanted.ParentSequence || record.Root != wanted.Root || record.Workspace != wanted.Workspace:
			return fault.Invalid("run_id", "has a worktree for another parent")
		}
		if !record.Ended { // else its next call has it made again
			if err := s.fillWorktree(ctx, folder, record); err != nil {
				return err
			}
		}
		resp.Workspace = filepath.Join(folder, worktreeFiles)
		return nil
	})
	var problem worktreeProblem
	if errors.As(err, &problem) {
		return &harnessv1.MakeWorktreeResponse{Problem: string(problem)}, nil
	}
	return resp, err
}

// EndWorktree removes a worktree that is not needed any more.
func (s *Server) EndWorktree(ctx context.Context, req *harnessv1.EndWorktreeRequest) (*harnessv1.EndWorktreeResponse, error) {
	for field, value := range map[string]string{"namespace": req.GetNamespace(), "run_id": req.GetRunId()} {
		if err := checkName(field, value); err != nil {
			return nil, err
		}
	}
	folder, resp := s.worktrees.folder(req.GetNamespace(), req.GetRunId()), &harnessv1.EndWorktreeResponse{}
	return resp, s.detached(ctx, func(ctx context.Context) error {
		unlock, err := s.worktrees.lock(ctx, folder)
		if err != nil {
			return err
		}
		defer unlock()
		record, err := s.worktrees.read(folder)
		switch {
		case err != nil && !req.GetDeleted():
			return err
		case record == nil && err == nil:
			return nil
		case req.GetDeleted():
			s.worktrees.setUsed(folder, false)
			return s.dropFolder(folder)
		}
		files := filepath.Join(folder, worktreeFiles)
		if s.isBusy(files) {
			resp.Kept = true
			return nil // a request that came late: the run works again
		}
		s.worktrees.setUsed(folder, false)
		record.Ended = true
		if err := s.worktrees.store(folder, record); err != nil || !exists(files) {
			return err
		}
		failpoint.Hit(role, "worktree_ended")
		if unchanged, err := s.isUnchanged(ctx, folder, record); err != nil || !unchanged {
			if err != nil {
				s.log.Warn("a worktree cannot be compared; it is kept", "namespace", record.Namespace, "run", record.Run, "error", err)
			}
			resp.Kept = true
			return nil
		}
		return s.dropFiles(folder)
	})
}

// isBusy reports whether a call runs in a workspace.
func (s *Server) isBusy(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if filepath.Clean(c.workspace) == dir {
			return true
		}
	}
	return false
}

// dropFiles removes the files of a worktree, and keeps its record.
func (s *Server) dropFiles(folder string) error {
	aside := filepath.Join(folder, worktreeRemoved+randomHex(4))
	if err := os.Rename(filepath.Join(folder, worktreeFiles), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	failpoint.Hit(role, "worktree_aside")
	removeAll(aside)
	return nil
}

// dropFolder removes a worktree and its record.
func (s *Server) dropFolder(folder string) error {
	aside := filepath.Join(s.worktrees.dir, worktreeRemoved+randomHex(4))
	if err := os.Rename(folder, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	removeAll(aside)
	return nil
}

// useWorktree prepares the workspace of a call that begins. A worktree that was removed at its run's
// end is made again, from the parent's present files.
func (s *Server) useWorktree(ctx context.Context, dir string) {
	folder := s.worktrees.folderOf(dir)
	if folder == "" || s.worktrees.isUsed(folder) {
		return
	}
	unlock, err := s.worktrees.lock(ctx, folder)
	if err != nil {
		return
	}
	defer unlock()
	record, err := s.worktrees.read(folder)
	if record == nil || err != nil {
		return
	}
	if record.Ended {
		record.Ended = false
		if err := s.worktrees.store(folder, record); err != nil {
			return
		}
	}
	if err := s.fillWorktree(ctx, folder, record); err != nil {
		s.log.Warn("a worktree cannot be made again", "namespace", record.Namespace, "run", record.Run, "error", err)
	}
}

// detached runs f to its end, whatever becomes of ctx, unless the host closes. It returns the cause of the
// end of ctx if that is first.
func (s *Server) detached(ctx context.Context, f func(context.Context) error) error {
	s.mu.Lock()
	if s.closing || s.draining {
		s.mu.Unlock()
		return nothingRan(closingText, nil)
	}
	ended := make(chan error, 1)
	s.running.Go(func() {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), worktreeLimit, errTimeout)
		defer cancel()
		s.running.Go(func() {
			select {
			case <-s.closed:
				cancel()
			case <-ctx.Done():
			}
		})
		ended <- f(ctx)
	})
	s.mu.Unlock()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	var problem worktreeProblem
	var field *fault.FieldError
	switch {
	case err == nil, errors.As(err, &problem), errors.As(err, &field):
		return err
	}
	return unavailable("the worktree: "+workspace.Reason(err), err)
}

// sweepWorktrees removes what an earlier host has left incomplete, and undoes merges that
// it had not finished.
func (s *Server) sweepWorktrees() {
	entries, _ := os.ReadDir(s.worktrees.dir)
	for _, e := range entries {
		folder := filepath.Join(s.worktrees.dir, e.Name())
		if record, err := s.worktrees.read(folder); record == nil && err == nil || strings.HasPrefix(e.Name(), worktreeRemoved) {
			removeAll(folder)
			continue
		}
		parts, _ := os.ReadDir(folder)
		for _, part := range parts {
			if name := part.Name(); strings.HasPrefix(name, worktreeNew) || strings.HasPrefix(name, worktreeRemoved) {
				removeAll(filepath.Join(folder, name))
			}
		}
		if err := s.recoverMerge(folder); err != nil {
			s.log.Error("a merge that was interrupted cannot be undone yet", "folder", folder, "error", err)
		}
	}
}
