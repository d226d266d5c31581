package toolhostserver

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// repository is the git repository of a workspace. Paths are absolute and without links.
type repository struct {
	workspace string
	// root is the folder with .git, or the workspace if there is no repository.
	root   string
	exists bool
}

// findRepository finds the nearest folder with .git, from the workspace up. It ignores
// one above the workspace that belongs to an unrelated user: every user can put a .git
// and instruction files into a folder such as /tmp.
func findRepository(dir string) (repository, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return repository{}, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return repository{}, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return repository{}, err
	}
	r := repository{workspace: dir, root: dir}
	for at := dir; ; at = filepath.Dir(at) {
		git, err := os.Stat(filepath.Join(at, ".git"))
		if err == nil && (git.IsDir() || git.Mode().IsRegular()) {
			if at == dir || isTrusted(info, git) {
				r.root, r.exists = at, true
			}
			return r, nil
		}
		if at == filepath.Dir(at) {
			return r, nil
		}
	}
}

// isTrusted reports whether a file belongs to the workspace's owner, to this process's
// user or to root.
func isTrusted(workspace, file os.FileInfo) bool {
	fileStat, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	workspaceStat, ok := workspace.Sys().(*syscall.Stat_t)
	return ok && fileStat.Uid == workspaceStat.Uid || fileStat.Uid == 0 || int(fileStat.Uid) == os.Geteuid()
}

// instructions returns the instruction files from the workspace up to the repository's
// root, nearest first. It leaves out files that cannot be read, that are larger than
// files may be, or that are links out of the root.
func (s *Server) instructions(ctx context.Context, r repository) []*harnessv1.InstructionFile {
	root, err := s.openWorkspace(r.root)
	if err != nil {
		return nil
	}
	defer root.Close()
	var found []toolhost.FoundInstruction
	for at := r.workspace; ; at = filepath.Dir(at) {
		for _, name := range toolhost.InstructionNames {
			if f, ok := s.instruction(ctx, r, root, filepath.Join(at, name)); ok {
				found = append(found, f)
			}
		}
		if at == r.root || at == filepath.Dir(at) {
			return toolhost.Instructions(found)
		}
	}
}

func (s *Server) instruction(ctx context.Context, r repository, root *workspace.Workspace, path string) (f toolhost.FoundInstruction, ok bool) {
	name, err := filepath.Rel(r.root, path)
	if err != nil {
		return f, false
	}
	file, err := root.Digest(ctx, name, toolhost.InstructionBytes, int64(s.config.Limits.FileBytes))
	if err != nil {
		return f, false
	}
	shown, err := filepath.Rel(r.workspace, path)
	return toolhost.FoundInstruction{Path: shown, Head: string(file.Head), Size: file.Size, Digest: file.SHA256}, err == nil
}

// readSmall reads a regular file of at most limit bytes. It does not wait for the other
// end of a named pipe.
func readSmall(path string, limit int64) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("is not a regular file")
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = errors.New("is larger than expected")
	}
	return string(content), err
}
