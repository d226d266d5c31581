package git

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// Repository is the git repository of a workspace. Paths are absolute and without links.
type Repository struct {
	Workspace string
	// Root is the folder with .git, or the workspace if there is no repository.
	Root   string
	Exists bool
}

// Find returns the nearest folder with .git, from the workspace up. It ignores
// one above the workspace that belongs to an unrelated user: every user can put a .git
// and instruction files into a folder such as /tmp.
func Find(dir string) (Repository, error) {
	dir = filepath.Clean(dir)
	folder, err := disk.OpenFolder(dir)
	if err != nil {
		return Repository{}, err
	}
	defer func() { _ = folder.Close() }()
	info, err := folder.Stat()
	if err != nil {
		return Repository{}, err
	}
	r := Repository{Workspace: dir, Root: dir}
	for at := dir; ; at = filepath.Dir(at) {
		git, err := os.Stat(filepath.Join(at, ".git"))
		if err == nil && (git.IsDir() || git.Mode().IsRegular()) {
			if at == dir || isTrusted(info, git) {
				r.Root, r.Exists = at, true
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
