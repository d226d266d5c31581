package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

// stageFile copies a file to a path.
func stageFile(to string, from *treeFolder, name string) (toolhost.TreeFile, error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return toolhost.TreeFile{}, err
	}
	read, err := from.read(name, f)
	return read, errors.Join(err, f.Close())
}

var errConflict = errors.New("the lines conflict")

// combine merges the lines of a file.
func (m *merge) combine(ctx context.Context, stage string, c *mergeChange, name string, base toolhost.TreeFile) (toolhost.TreeFile, error) {
	if base.Size > maxMerged || c.Old.Size > maxMerged {
		return toolhost.TreeFile{}, errConflict
	}
	for part, from := range map[string]*treeFolder{"ours": m.ours, "theirs": m.theirs} {
		if f, err := stageFile(filepath.Join(stage, part), from, name); err != nil || f.Size > maxMerged {
			return toolhost.TreeFile{}, cmpError(err, errConflict)
		}
	}
	if err := m.readBase(ctx, filepath.Join(stage, "base"), name, base); err != nil {
		return toolhost.TreeFile{}, err
	}
	program, err := git.Program(m.record.Workspace)
	if err != nil {
		return toolhost.TreeFile{}, err
	}
	to, err := os.OpenFile(filepath.Join(stage, c.Staged), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return toolhost.TreeFile{}, err
	}
	// No repository is above the folder for git, whatever there is.
	environ := append(toolhost.GitEnvironment(), "PATH="+os.Getenv("PATH"), "GIT_DIR="+filepath.Join(stage, "none"))
	err = m.t.config.Git.Run(ctx, git.Run{
		Program: program, Dir: stage, Environ: environ, Arguments: append(toolhost.GitOptions(), "merge-file", "-p", "-q", "ours", "base", "theirs"), Output: to,
	})
	if closed := to.Close(); closed != nil {
		return toolhost.TreeFile{}, closed
	}
	if err != nil {
		if ctx.Err() != nil {
			return toolhost.TreeFile{}, err
		}
		return toolhost.TreeFile{}, errConflict
	}
	tree, err := openTree(ctx, stage)
	if err != nil {
		return toolhost.TreeFile{}, err
	}
	defer tree.close()
	return tree.read(c.Staged, nil)
}

// readBase writes the content with which a file of the worktree was made.
func (m *merge) readBase(ctx context.Context, to, name string, base toolhost.TreeFile) error {
	files := filepath.Join(m.folder, worktreeFiles)
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = m.t.config.Git.WithSubstitute(git.Repository{Workspace: files, Root: files, Exists: true}, func(program string, environ []string) error {
		arguments := append(toolhost.GitOptions(), "cat-file", "blob", m.record.Commit+":"+name)
		return m.t.config.Git.Run(ctx, git.Run{Program: program, Dir: files, Environ: environ, Arguments: arguments, Output: f})
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	tree, err := openTree(ctx, filepath.Dir(to))
	if err != nil {
		return err
	}
	defer tree.close()
	read, err := tree.read(filepath.Base(to), nil)
	if err == nil && read.Digest != base.Digest {
		err = errors.New("the repository of the worktree is damaged")
	}
	return err
}

func cmpError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// apply changes the workspace, or leaves it unchanged. conflict is a path that changed meanwhile.
func (m *merge) apply(call, stage string, stray []string) (result Result, conflict string, err error) {
	journal := &mergeJournal{ID: disk.RandomName(8), Workspace: m.record.Workspace, Changes: m.changes}
	for _, c := range m.changes {
		if c.Old.Mode == toolhost.NoFile {
			continue
		}
		saved, err := stageFile(filepath.Join(stage, c.Saved), m.ours, string(c.Path))
		if err != nil {
			return result, "", err
		}
		if saved.Digest != c.Old.Digest {
			return result, string(c.Path), nil
		}
	}
	if err := journal.store(stage); err != nil {
		return result, "", err
	}
	failpoint.Hit(role, "merge_stored")
	if conflict, err := journal.carryOut(stage, m.t.config.Sync); err != nil || conflict != "" {
		m.t.config.Logger.Warn("a merge is undone", "path", conflict, "error", err)
		return result, conflict, errors.Join(err, journal.undo(stage))
	}
	var changed, added, deleted []string
	for _, c := range m.changes {
		switch name := string(c.Path); {
		case c.New.Mode == toolhost.NoFile:
			deleted = append(deleted, name)
		case c.Old.Mode == toolhost.NoFile:
			added = append(added, name)
		default:
			changed = append(changed, name)
		}
		result.Changed = append(result.Changed, strings.ToValidUTF8(string(c.Path), "?"))
	}
	result.Text = toolhost.MergeText(m.record.Run, changed, added, deleted)
	if len(stray) > 0 {
		result.Text += "\nThe worktree is kept: its references " + toolhost.NameList(stray) + " have commits that its files do not have."
	}
	if m.record.Merged == nil {
		m.record.Merged = map[string]mergeResult{}
	}
	failpoint.Hit(role, "merge_changed")
	m.record.Merged[call], m.record.Merge = mergeResult{Text: result.Text, Changed: result.Changed}, journal.ID
	if err := m.t.store(m.folder, m.record); err != nil {
		return Result{}, "", errors.Join(err, journal.undo(stage))
	}
	failpoint.Hit(role, "merged")
	return result, "", nil
}
