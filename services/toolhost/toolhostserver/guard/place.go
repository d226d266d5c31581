package guard

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

// news is the kind of change in the places of a call.
type news uint8

const (
	nothing news = iota
	// files of repositories that are known.
	files
	// folders, so that repositories are searched for too.
	folders
)

// place is a folder, or a file, whose changes matter to a call.
type place struct {
	path string
	// names are the entries of a folder that matter, any means all but samples.
	names map[string]bool
	any   bool
	// folders means that new folders may be, or contain, repositories.
	folders bool
	// content means that the contents of the entries matter, too.
	content bool
}

// what returns the kind of change of an event about an entry. It has no name if the place is a file.
func (p *place) what(name string, folder bool) news {
	switch {
	case folder && p.folders:
		return folders
	case p.names[name]:
		if folder {
			return folders
		}
		return files
	case name == "" || p.any && !gitguard.IsSample(name):
		return files
	}
	return nothing
}

// ofGit are the entries of a git folder that matter.
var ofGit = []string{"config", "config.worktree", "commondir", "hooks", "modules", "worktrees", "rebase-merge", "rebase-apply"}

// places returns the places of a workspace in which a snapshot from before a call, and the present one, can change.
func places(before, now *gitguard.Snapshot) map[string]*place {
	all := placeSet{}
	all.folder(now.Workspace, true, false, ".git")
	for _, shot := range []*gitguard.Snapshot{before, now} {
		for folder, r := range shot.Repositories {
			all.repository(folder, r)
		}
		for at, p := range shot.Pointers {
			all.file(at)
			all.above(p.Target)
		}
	}
	return all
}

type placeSet map[string]*place

// folder adds a folder with entries that matter.
func (s placeSet) folder(path string, folders, content bool, names ...string) {
	p := s[path]
	if p == nil {
		p = &place{path: path, names: map[string]bool{}}
		s[path] = p
	}
	p.folders, p.content = p.folders || folders, p.content || content
	for _, name := range names {
		p.names[name] = true
	}
}

// above adds the nearest folder above a path, and the path's name in it.
func (s placeSet) above(path string) {
	for path != "" && path != "/" && path != "." {
		parent := filepath.Dir(path)
		if info, err := os.Lstat(parent); err == nil && info.IsDir() {
			s.folder(parent, false, false, filepath.Base(path))
			return
		}
		path = parent
	}
}

// file adds a file in a folder that is not git's, in which much else may be written.
func (s placeSet) file(path string) {
	s.above(path)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		s[path] = &place{path: path, content: true}
	}
}

func (s placeSet) repository(folder string, r *gitguard.Repository) {
	s.above(folder)
	s.folder(folder, false, true, ofGit...)
	s.folder(folder+"/modules", true, false)
	s.folder(folder+"/worktrees", true, false)
	for at := range r.Configs {
		if filepath.Dir(at) != folder {
			s.file(at)
		}
	}
	for at, e := range r.Hooks {
		if e.Kind == gitguard.Folder {
			s.folder(at, true, true)
			s[at].any = true
		}
	}
	for at, e := range r.Hooks {
		if parent := s[filepath.Dir(at)]; e.Kind != gitguard.Folder && (parent == nil || !parent.any) {
			s.file(at)
		}
	}
	s.above(r.Common.Target)
	if i := strings.LastIndex(folder, "/modules/"); i >= 0 { // names of submodules may have slashes
		for at := filepath.Dir(folder); len(at) > i; at = filepath.Dir(at) {
			s.folder(at, true, false)
		}
	}
}
