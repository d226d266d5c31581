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
// set up by it, and no person or rule has allowed that for the path that the call names. What a person
// has approved is left as it is written. Other writes are compared as after a command, and refused for the files by
// which git runs programs: a command may not change them either.
func (f *Files) refuseWrite(w *workspace.Workspace, watch *guard.Watch, r Right, path, name string) error {
	file := filepath.Join(w.Dir, name)
	what := sandbox.Guarded(name)
	ofGit := sandbox.PlaceOf(name).OfGit() || watch.Holds(file) || isPartOfRepository(w.Root, name)
	if what == "" && ofGit {
		what = "what git runs programs by"
	}
	named := filepath.Join(w.Dir, path) == file || filepath.IsAbs(path) && filepath.Clean(path) == file
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(w.Dir, path)
		named = named || err == nil && rel == name
	}
	if r.Approved && named && (r.Guarded && what != "" || f.Named(file)) {
		watch.Accept(file)
	}
	switch {
	case what == "", r.Guarded && named && (r.Approved || !ofGit):
		return nil
	case r.Guarded && named:
		return fmt.Errorf("is %s, and no person has approved this call; ask the user to change it", what)
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
