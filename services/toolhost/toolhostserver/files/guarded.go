package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// refuseWrite returns why a call must not write a file: programs run by it, or agents are
// set up by it, and no person or rule has allowed that. allowed is true if one has, for the
// path that the call names.
func refuseWrite(w *workspace.Workspace, watch *guard.Watch, allowed bool, path, name string) error {
	file := filepath.Join(w.Dir, name)
	what := sandbox.Guarded(name)
	if what == "" && (watch.Holds(file) || isPartOfRepository(w.Root, name)) {
		what = "what git runs programs by"
	}
	named := filepath.Join(w.Dir, path) == file || filepath.IsAbs(path) && filepath.Clean(path) == file
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(w.Dir, path)
		named = named || err == nil && rel == name
	}
	switch {
	case what == "":
		return nil
	case allowed && named:
		watch.Accept(file)
		return nil
	case !named:
		return fmt.Errorf("leads to %s, which is %s; write it by that path, so that a person is asked", name, what)
	}
	return fmt.Errorf("is %s; ask the user to change it", what)
}

// isPartOfRepository reports whether a file is in a folder that git takes for a bare
// repository, or would after the file is written.
func isPartOfRepository(workspace *os.Root, name string) bool {
	parts := strings.Split(name, "/")
	folder := "."
	for _, part := range parts {
		if gitguard.IsBare(func(entry string) bool {
			_, err := workspace.Lstat(filepath.Join(folder, entry))
			return err == nil || part == entry
		}) {
			return true
		}
		folder = filepath.Join(folder, part)
	}
	return false
}
