package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// access opens paths below folders that were opened before. Links that a call has made do
// not lead out of these.
type access struct {
	scarcity
	roots map[string]*os.Root
}

// newAccess opens a workspace. Its error is ErrWorkspace unless there are no descriptors.
func newAccess(workspace string) (*access, error) {
	root, err := disk.OpenRoot(workspace)
	var scarce scarcity
	switch {
	case scarce.see(err) == nil:
	case scarce.err != nil:
		return nil, scarce.err
	default:
		return nil, fmt.Errorf("%w: %w", ErrWorkspace, err)
	}
	return &access{roots: map[string]*os.Root{workspace: root}}, nil
}

func (a *access) close() {
	for _, root := range a.roots {
		_ = root.Close()
	}
}

// anchor opens a git folder outside of the folders that are open.
func (a *access) anchor(folder string) {
	if _, _, err := a.opened(folder); err == nil {
		return
	}
	root, err := disk.OpenRoot(folder)
	if a.see(err) == nil {
		a.roots[folder] = root
	}
}

var errNotOpen = errors.New("not below a folder that is open")

// opened returns the innermost open folder above a path, and the path's name below it.
func (a *access) opened(path string) (*os.Root, string, error) {
	best := ""
	for folder := range a.roots {
		if len(folder) > len(best) && path != folder && sandbox.Within(path, folder) {
			best = folder
		}
	}
	if best == "" {
		return nil, "", errNotOpen
	}
	name, err := filepath.Rel(best, path)
	return a.roots[best], name, err
}

// open returns an open folder above a path, its parent if there is no other, and the path's
// name below it.
func (a *access) open(path string) (*os.Root, string, error) {
	root, name, err := a.opened(path)
	if err == nil {
		return root, name, nil
	}
	parent := filepath.Dir(path)
	if root, err = disk.OpenRoot(parent); a.see(err) != nil {
		return nil, "", err
	}
	a.roots[parent] = root
	return root, filepath.Base(path), nil
}

// permit adds permissions of the owner to a folder, which a call may have taken away.
func (a *access) permit(path string, bits os.FileMode) {
	if root, name, err := a.open(path); err == nil {
		permit(root, name, bits)
	}
}

// permitAbove does so for the folders above a path that are in an open folder.
func (a *access) permitAbove(path string) {
	root, name, err := a.opened(path)
	if err != nil {
		return
	}
	for i := range name {
		if name[i] == '/' {
			permit(root, name[:i], 0o700)
		}
	}
}

// names returns the names of the folders in a folder that is no link.
func (a *access) names(folder string) []string {
	entries, err := readFolder(folder)
	if a.see(err) != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// canonical returns an absolute path without links, as far as it exists.
func canonical(path string) string {
	path = filepath.Clean(path)
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
		return resolved
	case errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path):
		return filepath.Join(canonical(filepath.Dir(path)), filepath.Base(path))
	}
	return path
}

// canonicalParent returns an absolute path whose folder is without links.
func canonicalParent(path string) string {
	return filepath.Join(canonical(filepath.Dir(path)), filepath.Base(path))
}
