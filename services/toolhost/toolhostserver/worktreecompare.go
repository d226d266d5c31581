package toolhostserver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// listWorktree lists the files of a worktree.
func (s *Server) listWorktree(ctx context.Context, folder string) (repository, listing, error) {
	files := filepath.Join(folder, worktreeFiles)
	r := repository{workspace: files, root: files, exists: true}
	l, err := s.list(ctx, r)
	return r, l, err
}

// changesOf returns the files with which a worktree was made, and those that it has.
func (s *Server) changesOf(ctx context.Context, folder string) (base, theirs map[string]toolhost.TreeFile, l listing, err error) {
	text, err := os.ReadFile(filepath.Join(folder, worktreeBase))
	if err != nil {
		return nil, nil, l, err
	}
	if base, err = toolhost.ParseTree(string(text)); err != nil {
		return nil, nil, l, err
	}
	r, l, err := s.listWorktree(ctx, folder)
	if err != nil {
		return nil, nil, l, err
	}
	names := slices.Clone(l.names)
	for name := range base { // also what git does not list any more
		names = append(names, name)
	}
	tree, err := openTree(ctx, r.workspace)
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
func (s *Server) differsAtSight(ctx context.Context, folder string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(folder, worktreeBase))
	if err != nil {
		return false, err
	}
	base, err := toolhost.ParseTree(string(text))
	if err != nil {
		return false, err
	}
	r, l, err := s.listWorktree(ctx, folder)
	if err != nil {
		return false, err
	}
	tree, err := openTree(ctx, r.workspace)
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
func (s *Server) isUnchanged(ctx context.Context, folder string, record *worktreeRecord) (bool, error) {
	if differs, err := s.differsAtSight(ctx, folder); err != nil || differs {
		return false, err
	}
	base, theirs, l, err := s.changesOf(ctx, folder)
	if err != nil || len(toolhost.ChangedPaths(base, theirs)) > 0 || l.head != record.Commit {
		return false, err
	}
	stray, err := s.strayRefs(ctx, folder)
	return len(stray) == 0, err
}

// strayRefs returns the references of a worktree with commits that its HEAD does not have.
func (s *Server) strayRefs(ctx context.Context, folder string) ([]string, error) {
	files := filepath.Join(folder, worktreeFiles)
	output := &limitedBuffer{limit: gitOutputBytes}
	err := s.withSubstitute(repository{workspace: files, root: files, exists: true}, func(git string, environ []string) error {
		arguments := append(toolhost.GitOptions(), "for-each-ref", "--no-merged=HEAD", "--format=%(refname)")
		return s.runGit(ctx, gitRun{program: git, dir: files, environ: environ, arguments: arguments, output: output})
	})
	return strings.Fields(output.String()), err
}
