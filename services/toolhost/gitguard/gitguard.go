// Package gitguard decides what of the git repositories of a workspace is put back after a
// call of an agent. Git runs programs for its user that a repository's configuration and
// hooks name, also at a plain git status. A call must not choose them.
//
// A Snapshot has what git runs programs by, before or after a call. Compare returns what
// to put back:
//
//   - Configuration outside of a short list: keys that name no program and that git
//     commands of daily work write. Included files and config.worktree count too.
//   - Hooks: the files of every hooks folder, their content and whether they are
//     executable.
//   - Files that lead git to another folder: .git and commondir.
//
// A repository that the call has made has what git writes into new repositories, and no
// hooks but samples. A repository that the call has moved is known by its ID.
//
// What git runs when its user continues, the steps of a rebase and files that hooks call, is
// named by Later and not put back.
//
// Not compared, because they name no program: attributes, which choose among filters that
// configuration defines, alternates, ignored files and references.
//
// The package is pure. Package guard of the tool host takes snapshots and puts back.
package gitguard

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Kind is what there is at a path.
type Kind uint8

// Kinds of entries.
const (
	Missing Kind = iota
	File
	Link
	Folder
	// Other is a device, a pipe or what cannot be read.
	Other
)

// Entry is what there is at a path.
type Entry struct {
	Kind Kind `json:"k,omitempty"`
	// Executable is true for a file with a bit for it.
	Executable bool `json:"x,omitempty"`
	// Data is the content of a file, or the target of a link.
	Data []byte `json:"d,omitempty"`
	// Digest identifies the content of a file that is too large for Data.
	Digest string `json:"s,omitempty"`
}

// Equal reports whether two entries are the same.
func (e Entry) Equal(o Entry) bool {
	return e.Kind == o.Kind && e.Executable == o.Executable && e.Digest == o.Digest && bytes.Equal(e.Data, o.Data)
}

// isText reports whether the entry is a file whose content is known.
func (e Entry) isText() bool { return e.Kind == File && e.Digest == "" }

// Pointer is an entry that leads git to a folder: a .git that is a file or a link, or a
// file commondir.
type Pointer struct {
	Entry
	// Target is the folder, absolute and without links; empty if it leads to none.
	Target string `json:"t,omitempty"`
}

// Repository is the git folder of a repository, a submodule or a linked worktree. Paths are
// absolute.
type Repository struct {
	// ID identifies the folder, also after it is moved.
	ID string `json:"i"`
	// Configs are its configuration files and those that they include.
	Configs map[string]Entry `json:"c,omitempty"`
	// Hooks are its hooks folders and their entries, without samples.
	Hooks map[string]Entry `json:"h,omitempty"`
	// Common is its file commondir.
	Common Pointer `json:"m"`
	// Todo is its file of that name.
	Todo Entry `json:"s"`
	// Called identifies the files of the work tree that its hooks name, by their paths.
	Called map[string]string `json:"l,omitempty"`
}

// Snapshot is what git runs programs by in a workspace.
type Snapshot struct {
	// Workspace is the folder of which this is a snapshot.
	Workspace string `json:"w"`
	// Partial reports that it may not have all repositories of the folder.
	Partial bool `json:"q,omitempty"`
	// Elsewhere reports that the folder is not the workspace of the call: paths are shown as absolute ones.
	Elsewhere bool `json:"-"`
	// Repositories by their git folders.
	Repositories map[string]*Repository `json:"r,omitempty"`
	// Pointers are the .git that are files or links, by their paths.
	Pointers map[string]Pointer `json:"p,omitempty"`
}

// IsSample reports whether a file of a hooks folder is a sample, which git never runs.
func IsSample(name string) bool { return strings.HasSuffix(name, ".sample") }

// IsBare reports whether git takes a folder for a git folder, by the entries that it has: objects and references may
// be in its common folder.
func IsBare(has func(name string) bool) bool {
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// Clone returns a copy that shares the entries' data.
func (s *Snapshot) Clone() *Snapshot {
	c := &Snapshot{Workspace: s.Workspace, Partial: s.Partial, Pointers: maps.Clone(s.Pointers), Repositories: make(map[string]*Repository, len(s.Repositories))}
	if c.Pointers == nil {
		c.Pointers = map[string]Pointer{}
	}
	for path, r := range s.Repositories {
		copied := *r
		copied.Configs, copied.Hooks = maps.Clone(r.Configs), maps.Clone(r.Hooks)
		c.Repositories[path] = &copied
	}
	return c
}

// Since returns the snapshot to compare with after a call that begins while others run:
// that of older, the snapshot of the first of them, so that a change of another call does not
// count as the former state. A partial one of another folder may lack what this one has.
func (s *Snapshot) Since(older *Snapshot) *Snapshot {
	if older == nil {
		return s
	}
	merged, first := s.Clone(), older.Clone()
	if !older.Partial || older.Workspace == s.Workspace {
		maps.DeleteFunc(merged.Repositories, func(path string, _ *Repository) bool { return within(path, older.Workspace) })
		maps.DeleteFunc(merged.Pointers, func(path string, _ Pointer) bool { return within(path, older.Workspace) })
	}
	for path, r := range first.Repositories {
		if s.Repositories[path] != nil || within(path, s.Workspace) {
			merged.Repositories[path] = r
		}
	}
	for path, p := range first.Pointers {
		if within(path, s.Workspace) {
			merged.Pointers[path] = p
		}
	}
	return merged
}

// Accept takes the entry of a path over from a later snapshot: a person has approved it.
func (s *Snapshot) Accept(later *Snapshot, path string) {
	if p, ok := later.Pointers[path]; ok {
		s.Pointers[path] = p
	}
	for folder, r := range later.Repositories {
		mine := s.Repositories[folder]
		if mine == nil {
			continue
		}
		accept(mine.Configs, r.Configs, path)
		accept(mine.Hooks, r.Hooks, path)
		if path == folder+"/commondir" {
			mine.Common = r.Common
		}
	}
}

func accept(mine, later map[string]Entry, path string) {
	_, known := mine[path]
	e, found := later[path]
	switch {
	case mine == nil || !known && !found:
	case !found:
		delete(mine, path)
	default:
		mine[path] = e
	}
}

// Holds reports whether a path is one of those that are compared.
func (s *Snapshot) Holds(path string) bool {
	if _, ok := s.Pointers[path]; ok {
		return true
	}
	for folder, r := range s.Repositories {
		if _, ok := r.Configs[path]; ok || path == folder+"/commondir" {
			return true
		}
		for hook, e := range r.Hooks {
			if path == hook || within(path, hook) && e.Kind != File {
				return true
			}
		}
	}
	return false
}

// Target returns the folder to which an entry leads git; empty for none.
func (s *Snapshot) Target(path string) string {
	if p, ok := s.Pointers[path]; ok {
		return p.Target
	}
	if folder, ok := strings.CutSuffix(path, "/commondir"); ok && s.Repositories[folder] != nil {
		return s.Repositories[folder].Common.Target
	}
	return ""
}

// within reports whether path is folder or below it. Both are absolute and clean.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
