package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// journalFile is the name of a journal in the folder of a merge.
const journalFile = "journal"

// mergeJournal is what a merge changes in a workspace. It is on disk before the first change, with the
// contents before and after, until the merge is recorded or undone.
type mergeJournal struct {
	ID        string
	Workspace string
	Changes   []*mergeChange
	// Folders that the merge makes, the outer ones first.
	Folders [][]byte
}

func (j *mergeJournal) store(stage string) error {
	tree, err := openTree(context.Background(), j.Workspace)
	if err != nil {
		return err
	}
	defer tree.close()
	seen := map[string]bool{}
	for _, c := range j.Changes {
		for at := path.Dir(string(c.Path)); at != "." && c.New.Mode != toolhost.NoFile; at = path.Dir(at) {
			if _, err := tree.root.Lstat(at); errors.Is(err, fs.ErrNotExist) && !seen[at] {
				seen[at] = true
				j.Folders = append(j.Folders, []byte(at))
			}
		}
	}
	slices.SortFunc(j.Folders, func(a, b []byte) int { return len(a) - len(b) })
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return disk.Replace(filepath.Join(stage, journalFile), data)
}

// temporary returns the name of a file of the workspace before it is renamed.
func (j *mergeJournal) temporary(name string) string {
	return path.Join(path.Dir(name), ".harness-"+j.ID+".tmp")
}

// carryOut changes the workspace. conflict is a path that is not as it was when the merge was planned,
// or that cannot be written: changes before it are done.
func (j *mergeJournal) carryOut(stage string, sync bool) (conflict string, err error) {
	tree, err := openTree(context.Background(), j.Workspace)
	if err != nil {
		return "", err
	}
	defer tree.close()
	// Deletions come first: a folder may become a file.
	for _, deletes := range []bool{true, false} {
		for _, c := range j.Changes {
			name := string(c.Path)
			if deletes != (c.New.Mode == toolhost.NoFile) {
				continue
			}
			now, err := tree.read(name, nil)
			if err != nil {
				return name, err
			}
			if now != c.Old && (c.Old.Mode != toolhost.NoFile || now.Mode != toolhost.Directory) {
				return name, nil
			}
			if err := j.put(tree, stage, name, c.Staged, c.Old, c.New, sync); err != nil {
				return name, nil //nolint:nilerr // all is undone, and the path named
			}
			failpoint.Hit(role, "merge_changing")
		}
	}
	return "", nil
}

// put makes a path be a file, or removes it. The content is in a file of stage.
func (j *mergeJournal) put(tree *treeFolder, stage, name, staged string, old, file toolhost.TreeFile, sync bool) error {
	clear(tree.plain)
	if at, found := tree.blocked(name); found {
		return &fs.PathError{Op: "write", Path: at, Err: errors.New("is no folder")}
	}
	if file.Mode == toolhost.NoFile {
		if err := tree.root.Remove(name); err != nil {
			return err
		}
		for at := path.Dir(name); at != "." && tree.root.Remove(at) == nil; at = path.Dir(at) { // empty ones only
		}
		return nil
	}
	if err := tree.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	temporary := j.temporary(name)
	_ = tree.root.Remove(temporary)
	if err := j.write(tree, stage, temporary, name, staged, old, file, sync); err != nil {
		return errors.Join(err, tree.root.Remove(temporary))
	}
	if err := tree.root.Rename(temporary, name); err != nil {
		return errors.Join(err, tree.root.Remove(temporary))
	}
	return nil
}

func (j *mergeJournal) write(tree *treeFolder, stage, temporary, name, staged string, old, file toolhost.TreeFile, sync bool) error {
	if file.Mode == toolhost.Symlink {
		target, err := os.ReadFile(filepath.Join(stage, staged))
		if err != nil {
			return err
		}
		return tree.root.Symlink(string(target), temporary)
	}
	mode := fs.FileMode(0o666)
	if file.Mode == toolhost.Executable {
		mode = 0o777
	}
	from, err := os.Open(filepath.Join(stage, staged))
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := tree.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if info, statErr := tree.root.Lstat(name); statErr == nil && info.Mode().IsRegular() {
		kept := info.Mode().Perm() &^ 0o111
		if file.Mode == toolhost.Executable {
			kept |= kept & 0o444 >> 2 // for all that may read it
		}
		if file.Mode == old.Mode {
			kept = info.Mode().Perm()
		}
		err = errors.Join(err, to.Chmod(kept))
	}
	if sync {
		err = errors.Join(err, to.Sync())
	}
	return errors.Join(err, to.Close())
}

// undo puts back what a merge has changed. A file that has changed since is left.
func (j *mergeJournal) undo(stage string) error {
	tree, err := openTree(context.Background(), j.Workspace)
	if err != nil {
		return err
	}
	defer tree.close()
	var failed error
	// Files that were added go first, then the deleted ones come back.
	for _, added := range []bool{true, false} {
		for _, c := range slices.Backward(j.Changes) {
			if name := string(c.Path); added == (c.Old.Mode == toolhost.NoFile) {
				_ = tree.root.Remove(j.temporary(name))
				clear(tree.plain)
				if now, err := tree.read(name, nil); err != nil || now != c.New || now == c.Old {
					continue
				}
				failed = errors.Join(failed, j.put(tree, stage, name, c.Saved, c.New, c.Old, true))
			}
		}
	}
	for _, folder := range slices.Backward(j.Folders) {
		_ = tree.root.Remove(string(folder)) // if it is empty
	}
	return failed
}

// recoverMerge undoes a merge that an earlier host had not recorded.
func (t *Worktrees) recoverMerge(folder string) error {
	stage := filepath.Join(folder, worktreeMerge)
	data, err := os.ReadFile(filepath.Join(stage, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(stage)
	}
	if err != nil {
		return err
	}
	j := &mergeJournal{}
	if err := json.Unmarshal(data, j); err != nil {
		return err
	}
	record, err := t.read(folder)
	if err != nil {
		return err
	}
	if record.Merge != j.ID {
		if err := j.undo(stage); err != nil {
			return err
		}
	}
	return os.RemoveAll(stage)
}
