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
)

// repository is the git repository that a workspace lies in. Paths are absolute
// and without links.
type repository struct {
	workspace string
	// root is the folder with .git; the workspace itself where there is no
	// repository.
	root string
	is   bool
}

// repositoryOf finds the nearest folder with .git, from the workspace up. One
// above the workspace that belongs to somebody else is not believed: anybody can
// put a .git and instructions into a folder such as /tmp.
func repositoryOf(workspace string) (repository, error) {
	dir, err := filepath.EvalSymlinks(workspace)
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
			if at == dir || believed(info, git) {
				r.root, r.is = at, true
			}
			return r, nil
		}
		if at == filepath.Dir(at) {
			return r, nil
		}
	}
}

// believed says that something belongs to the workspace's owner, to this
// process's user or to root.
func believed(workspace, other os.FileInfo) bool {
	owner, known := other.Sys().(*syscall.Stat_t)
	if !known {
		return false
	}
	mine, known := workspace.Sys().(*syscall.Stat_t)
	return known && owner.Uid == mine.Uid || owner.Uid == 0 || int(owner.Uid) == os.Geteuid()
}

// instructions are the instruction files from the workspace up to the repository's
// root, nearest first. One that cannot be read, or that a link leads to from
// outside the root, is left out, and so is one that is larger than files may be.
func (s *Server) instructions(ctx context.Context, r repository) []*harnessv1.InstructionFile {
	root, err := openWorkspace(r.root)
	if err != nil {
		return nil
	}
	defer root.close()
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

func (s *Server) instruction(ctx context.Context, r repository, root *workspace, path string) (f toolhost.FoundInstruction, ok bool) {
	below, err := filepath.Rel(r.root, path)
	if err != nil {
		return f, false
	}
	c, err := root.look(ctx, below, toolhost.InstructionBytes, int64(s.config.Limits.FileBytes))
	if err != nil {
		return f, false
	}
	shown, err := filepath.Rel(r.workspace, path)
	return toolhost.FoundInstruction{Path: shown, Head: string(c.head), Size: c.size, Digest: c.digest}, err == nil
}

// readSmall reads a regular file of at most limit bytes. It does not wait for the
// other end of a pipe.
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
