package worktree

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
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// Make makes the worktree of a run, once, and returns its path. The error is a Problem if the
// workspace can have none.
func (t *Worktrees) Make(ctx context.Context, req *harnessv1.MakeWorktreeRequest) (workspace string, err error) {
	folder := t.folder(req.GetNamespace(), req.GetRunId())
	unlock, err := t.lock(ctx, folder)
	if err != nil {
		return "", err
	}
	defer unlock()
	record, err := t.read(folder)
	if err != nil {
		return "", err
	}
	wanted := &treeRecord{
		Namespace: req.GetNamespace(), Run: req.GetRunId(), Parent: req.GetParentRunId(), ParentSequence: req.GetParentFirstSequence(),
		Root: req.GetRootRunId(), Workspace: filepath.Clean(req.GetWorkspace()), Hidden: req.GetSandbox().GetHide(),
	}
	switch {
	case record == nil:
		record = wanted
		if err := t.store(folder, record); err != nil {
			return "", err
		}
		failpoint.Hit(role, "worktree_recorded")
	case record.Parent != wanted.Parent || record.ParentSequence != wanted.ParentSequence || record.Root != wanted.Root || record.Workspace != wanted.Workspace:
		return "", fault.Invalid("run_id", "has a worktree for another parent")
	}
	if !record.Ended { // else its next call has it made again
		if err := t.fillWorktree(ctx, folder, record); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, worktreeFiles), nil
}

// End removes a worktree that is not needed any more, and reports whether it is kept.
func (t *Worktrees) End(ctx context.Context, req *harnessv1.EndWorktreeRequest) (kept bool, err error) {
	folder := t.folder(req.GetNamespace(), req.GetRunId())
	unlock, err := t.lock(ctx, folder)
	if err != nil {
		return false, err
	}
	defer unlock()
	record, err := t.read(folder)
	switch {
	case err != nil && !req.GetDeleted():
		return false, err
	case record == nil && err == nil:
		return false, nil
	case req.GetDeleted():
		t.setUsed(folder, false)
		return false, t.dropFolder(folder)
	}
	files := filepath.Join(folder, worktreeFiles)
	if t.config.Busy(files) {
		return true, nil // a request that came late: the run works again
	}
	t.setUsed(folder, false)
	record.Ended = true
	if err := t.store(folder, record); err != nil || !disk.Exists(files) {
		return false, err
	}
	failpoint.Hit(role, "worktree_ended")
	if unchanged, err := t.isUnchanged(ctx, folder, record); err != nil || !unchanged {
		if err != nil {
			t.config.Logger.Warn("a worktree cannot be compared; it is kept", "namespace", record.Namespace, "run", record.Run, "error", err)
		}
		return true, nil
	}
	return false, t.dropFiles(folder)
}

// dropFiles removes the files of a worktree, and keeps its record.
func (t *Worktrees) dropFiles(folder string) error {
	aside := filepath.Join(folder, worktreeRemoved+disk.RandomName(4))
	if err := os.Rename(filepath.Join(folder, worktreeFiles), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	failpoint.Hit(role, "worktree_aside")
	disk.RemoveAll(aside)
	return nil
}

// dropFolder removes a worktree and its record.
func (t *Worktrees) dropFolder(folder string) error {
	aside := filepath.Join(t.config.Dir, worktreeRemoved+disk.RandomName(4))
	if err := os.Rename(folder, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	disk.RemoveAll(aside)
	return nil
}

// Use prepares the workspace of a call that begins. A worktree that was removed at its run's
// end is made again, from the parent's present files.
func (t *Worktrees) Use(ctx context.Context, dir string) {
	folder := t.folderOf(dir)
	if folder == "" || t.isUsed(folder) {
		return
	}
	unlock, err := t.lock(ctx, folder)
	if err != nil {
		return
	}
	defer unlock()
	record, err := t.read(folder)
	if record == nil || err != nil {
		return
	}
	if record.Ended {
		record.Ended = false
		if err := t.store(folder, record); err != nil {
			return
		}
	}
	if err := t.fillWorktree(ctx, folder, record); err != nil {
		t.config.Logger.Warn("a worktree cannot be made again", "namespace", record.Namespace, "run", record.Run, "error", err)
	}
}

// Sweep removes what an earlier host has left incomplete, and undoes merges that
// it had not finished.
func (t *Worktrees) Sweep() {
	entries, _ := os.ReadDir(t.config.Dir)
	for _, e := range entries {
		folder := filepath.Join(t.config.Dir, e.Name())
		if record, err := t.read(folder); record == nil && err == nil || strings.HasPrefix(e.Name(), worktreeRemoved) {
			disk.RemoveAll(folder)
			continue
		}
		parts, _ := os.ReadDir(folder)
		for _, part := range parts {
			if name := part.Name(); strings.HasPrefix(name, worktreeNew) || strings.HasPrefix(name, worktreeRemoved) {
				disk.RemoveAll(filepath.Join(folder, name))
			}
		}
		if err := t.recoverMerge(folder); err != nil {
			t.config.Logger.Error("a merge that was interrupted cannot be undone yet", "folder", folder, "error", err)
		}
	}
}
