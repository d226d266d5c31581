package worktree

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

// listWorktree lists the files of a worktree.
func (t *Worktrees) listWorktree(ctx context.Context, folder string) (git.Repository, listing, error) {
	files := filepath.Join(folder, worktreeFiles)
	r := git.Repository{Workspace: files, Root: files, Exists: true}
	l, err := t.list(ctx, r)
	return r, l, err
}

// changesOf returns the files with which a worktree was made, and those that it has.
func (t *Worktrees) changesOf(ctx context.Context, folder string) (base, theirs map[string]toolhost.TreeFile, l listing, err error) {
	text, err := os.ReadFile(filepath.Join(folder, worktreeBase))
	if err != nil {
		return nil, nil, l, err
	}
	if base, err = toolhost.ParseTree(string(text)); err != nil {
		return nil, nil, l, err
	}
	r, l, err := t.listWorktree(ctx, folder)
	if err != nil {
		return nil, nil, l, err
	}
	names := slices.Clone(l.names)
	for name := range base { // also what git does not list any more
		names = append(names, name)
	}
	tree, err := openTree(ctx, r.Workspace)
	if err != nil {
		return nil, nil, l, err
	}
	defer tree.close()
	if theirs, err = tree.scan(names); err == nil {
		for _, folder := range filledFolders(tree, l) {
			theirs[folder] = toolhost.TreeFile{Mode: toolhost.Submodule}
		}
	}
	return base, theirs, l, err
}

// filledFolders returns the folders of submodules and nested repositories of a worktree in which there are
// files. The worktree was made without.
func filledFolders(tree *treeFolder, l listing) []string {
	folders := slices.Clone(l.nested)
	for _, m := range l.submodules {
		if f, err := tree.root.Open(m.Path); err == nil {
			if entries, _ := f.ReadDir(1); len(entries) > 0 {
				folders = append(folders, m.Path)
			}
			_ = f.Close()
		}
	}
	return folders
}

// differsAtSight reports whether a worktree differs from its files at the beginning in names or sizes.
func (t *Worktrees) differsAtSight(ctx context.Context, folder string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(folder, worktreeBase))
	if err != nil {
		return false, err
	}
	base, err := toolhost.ParseTree(string(text))
	if err != nil {
		return false, err
	}
	r, l, err := t.listWorktree(ctx, folder)
	if err != nil {
		return false, err
	}
	tree, err := openTree(ctx, r.Workspace)
	if err != nil {
		return false, err
	}
	defer tree.close()
	if len(filledFolders(tree, l)) > 0 {
		return true, nil
	}
	for _, name := range l.names {
		mode, _, err := tree.mode(name)
		if err != nil || mode != toolhost.NoFile && mode != toolhost.Directory && base[name].Mode != mode {
			return true, err
		}
	}
	for name, f := range base {
		mode, info, err := tree.mode(name)
		if err != nil || mode != f.Mode || info.Size() != f.Size {
			return true, err
		}
	}
	return false, nil
}

// isUnchanged reports whether nothing in a worktree would be lost with it.
func (t *Worktrees) isUnchanged(ctx context.Context, folder string, record *treeRecord) (bool, error) {
	if differs, err := t.differsAtSight(ctx, folder); err != nil || differs {
		return false, err
	}
	base, theirs, l, err := t.changesOf(ctx, folder)
	if err != nil || len(toolhost.ChangedPaths(base, theirs)) > 0 || l.head != record.Commit {
		return false, err
	}
	stray, err := t.strayRefs(ctx, folder)
	return len(stray) == 0, err
}

// strayRefs returns the references of a worktree with commits that its HEAD does not have.
func (t *Worktrees) strayRefs(ctx context.Context, folder string) ([]string, error) {
	files := filepath.Join(folder, worktreeFiles)
	output := &git.Output{Limit: git.OutputBytes}
	err := t.config.Git.WithSubstitute(git.Repository{Workspace: files, Root: files, Exists: true}, func(program string, environ []string) error {
		arguments := append(toolhost.GitOptions(), "for-each-ref", "--no-merged=HEAD", "--format=%(refname)")
		return t.config.Git.Run(ctx, git.Run{Program: program, Dir: files, Environ: environ, Arguments: arguments, Output: output})
	})
	return strings.Fields(output.String()), err
}
