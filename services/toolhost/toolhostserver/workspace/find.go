package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// Find returns the folder that a path leads to, links followed, as a run stores it. With roots it is
// within one of them, links followed too. This is the only place where links above a workspace are
// followed: all else opens the path of the result by Open.
func Find(path string, roots []string) (*harnessv1.WorkspaceFolder, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	at := disk.PathOf(f)
	if len(roots) > 0 && !slices.ContainsFunc(disk.WithoutLinks(roots), func(root string) bool { return isBelow(at, root) }) {
		return nil, fmt.Errorf("it leads to %s, and the token is for %s", at, strings.Join(roots, ", "))
	}
	return folder(f, at, roots)
}

// At returns the folder at a path, of which no part may be a link.
func At(path string) (*harnessv1.WorkspaceFolder, error) {
	f, err := disk.OpenFolder(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return folder(f, filepath.Clean(path), nil)
}

func folder(f *os.File, path string, roots []string) (*harnessv1.WorkspaceFolder, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	found := &harnessv1.WorkspaceFolder{Path: path, Boot: boot(), Roots: roots}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		found.Device, found.Inode = uint64(stat.Dev), stat.Ino //nolint:unconvert // 32 bits on some systems
	}
	return found, nil
}

// boot returns the id of the machine's present boot; empty if it has none.
var boot = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})
