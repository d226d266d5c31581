package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// errHidden reports a path in a hidden folder.
var errHidden = errors.New("belongs to the harness; no tool can read or write it")

// PrivateFolder is a folder that no workspace shows, wherever it is moved. A workspace in it is
// shown.
type PrivateFolder struct{ dir *os.File }

// OpenPrivate opens a folder that is to be hidden. The caller closes it.
func OpenPrivate(dir string) (*PrivateFolder, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &PrivateFolder{dir: f}, nil
}

// Close releases the folder.
func (h *PrivateFolder) Close() error { return h.dir.Close() }

// Hide hides a folder. It is called before the workspace is used.
func (w *Workspace) Hide(h *PrivateFolder) { w.hidden = h }

// hiddenPath returns where the hidden folder is, empty if the workspace has none.
func (w *Workspace) hiddenPath() string {
	if w.hidden == nil {
		return ""
	}
	at := disk.PathOf(w.hidden.dir)
	if base := w.base(); base == "" || !isBelow(at, base) {
		return ""
	}
	return at
}

// base returns where the workspace is, without links.
func (w *Workspace) base() string { return w.pathOf(w.self, ".") }

// visible closes a file in the hidden folder and returns an error instead.
func (w *Workspace) visible(f *os.File, name string) (*os.File, string, error) {
	if at := w.hiddenPath(); at != "" && isBelow(w.pathOf(f, name), at) {
		_ = f.Close()
		return nil, "", errHidden
	}
	return f, name, nil
}

// pathOf returns where an open file is, given its name below the workspace.
func (w *Workspace) pathOf(f *os.File, name string) string {
	if path := disk.PathOf(f); filepath.IsAbs(path) {
		return path
	}
	resolved, _ := filepath.EvalSymlinks(filepath.Join(w.Dir, name)) // another system
	return resolved
}

// hides reports whether a name below the workspace, without links, is in the hidden folder.
func (w *Workspace) hides(name string) bool {
	at := w.hiddenPath()
	return at != "" && isBelow(filepath.Join(w.base(), name), at)
}

// Visible returns the entries of an open folder without the hidden one.
func (w *Workspace) Visible(folder *os.File, name string, entries []fs.DirEntry) []fs.DirEntry {
	at := w.hiddenPath()
	if at == "" || filepath.Dir(at) != w.pathOf(folder, name) {
		return entries
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == filepath.Base(at) })
}

// isBelow reports whether path is folder or below it.
func isBelow(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
