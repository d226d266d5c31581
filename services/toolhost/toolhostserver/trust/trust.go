// Package trust knows which files runs have changed that agents are instructed or set up by, and
// which contents of them a person has accepted. Its files are in the data directory of the user, which no
// tool and no command reaches.
//
// These promises hold, also over restarts and for several processes at the same time:
//
//   - A file that no run has changed has no record, and counts.
//   - A file that a person has named is registered, and compared from then on, whatever its name is. One
//     that is named for the first time waits if its last change was made while something of a run was alive in
//     a workspace that has it, by the time that no program can set.
//   - A file with a record counts while its content is one that was there before the first change of a
//     run, or one that a person has accepted. Every other content waits, also one that a
//     person wrote: the lines of the person cannot be distinguished from those that a run left.
//   - While a command runs in a workspace, its files count as they were when they were compared last. So
//     it does if the host died meanwhile, until the next one has compared.
//   - Of a workspace in which not all files are compared, one that is not known waits (Partial).
//   - A record that cannot be read counts as one without an accepted content, and one that cannot be stored, such as
//     on a full disk, counts in its process, and keeps its workspace at work for others.
//
// What a single command writes and takes back is not seen, such as a commit on another branch.
package trust

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// maxAccepted bounds the contents of one file that are accepted; the oldest go first.
const maxAccepted = 32

// Store is the folder of the records of a user. Many goroutines and processes may use it.
type Store struct {
	records, watched, partial, named, periods string

	names   names
	unsaved unsavedRecords
	// mu is locked while a record is changed.
	mu sync.Mutex
}

// Open returns the store in the folder of a tool host. It makes nothing.
func Open(dir string) *Store {
	in := func(name string) string { return filepath.Join(dir, "trust", name) }
	return &Store{records: in("changed"), watched: in("watched"), partial: in("partial"), named: in("named"), periods: in("periods")}
}

// Record is a file that a run has changed.
type Record struct {
	// Path is absolute.
	Path string `json:"path"`
	// Former is the content that a person knows: the one before the first change of a run, or the one accepted last.
	Former Version `json:"former"`
	// Accepted are the digests of the contents that count.
	Accepted []string `json:"accepted"`
}

// counts reports whether the file may have a content.
func (r *Record) counts(digest string) bool { return slices.Contains(r.Accepted, digest) }

// accept adds a content.
func (r *Record) accept(v Version) {
	r.Former = v
	r.Accepted = append(slices.DeleteFunc(r.Accepted, func(d string) bool { return d == v.Digest }), v.Digest)
	r.Accepted = r.Accepted[max(0, len(r.Accepted)-maxAccepted):]
}

func (s *Store) file(path string) string {
	return filepath.Join(s.records, content.Digest([]byte(path))[:32]+".json")
}

// read returns the record of a path; nil for none.
func (s *Store) read(path string) *Record {
	data, err := os.ReadFile(s.file(path))
	if errors.Is(err, fs.ErrNotExist) {
		return s.unsaved.get(path)
	}
	r := &Record{}
	if err != nil || json.Unmarshal(data, r) != nil || r.Path != path {
		return &Record{Path: path}
	}
	return r
}

func (s *Store) write(r *Record) error {
	err := s.store(r)
	s.unsaved.set(r, err != nil)
	return err
}

func (s *Store) store(r *Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.records, 0o700); err != nil {
		return err
	}
	return disk.Replace(s.file(r.Path), data)
}

// Changed records that a run has changed a file. If that cannot be stored, this Store knows it until Unsaved has
// stored it.
func (s *Store) Changed(path string, before Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read(path) != nil {
		return nil
	}
	r := &Record{Path: path}
	r.accept(before)
	return s.write(r)
}

// Accept records that a person has accepted a content of a file.
func (s *Store) Accept(path string, v Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.read(path)
	if r == nil {
		r = &Record{Path: path}
	}
	r.accept(v)
	return s.write(r)
}

// Allowed is Accept for a change that a person has approved. Nothing is stored for a file that
// no run has changed before.
func (s *Store) Allowed(path string, v Version) error {
	if s.read(path) == nil {
		return nil
	}
	return s.Accept(path, v)
}

// Waits reports whether the content of a file does not count, by the path that was read or the path
// to which that leads.
func (s *Store) Waits(path, digest string) bool {
	if s.waitsAt(path, digest) {
		return true
	}
	target, err := filepath.EvalSymlinks(path)
	return err == nil && target != path && (s.waitsAt(target, digest) || !instructs(target) && s.waitsElsewhere(path, target, digest))
}

// waitsElsewhere is Waits for a link without a record to a file of a name that is not compared, such as one of
// another workspace. It waits if its last change was made while something of a run was alive there, where the link is not
// compared. If it counts, it is registered.
func (s *Store) waitsElsewhere(path, target, digest string) bool {
	known, named := s.Named(target)
	if named && known.Digest == digest || s.read(path) != nil {
		return false
	}
	before, changed := s.changing(target, digest)
	switch {
	case changed:
		known = before
	case !s.touchedWithout(target, path):
		if now := Read(target); now.Digest == digest && !sandbox.Within(target, filepath.Dir(path)) { // the link is compared there
			_ = s.Name(target, now) // without it the time of its last change decides again
		}
		return false
	case !named:
		known = Version{Digest: "not known"}
	}
	_ = s.Changed(path, known) // without it harness trust does not list the link
	return true
}

func (s *Store) waitsAt(path, digest string) bool {
	if r := s.read(path); r != nil {
		return !r.counts(digest)
	}
	return s.unknown(path)
}

// Unaccepted is Waits for a process that is no tool host, about a file that its person names: what a command
// that still runs has changed waits too, and so does a file of any name that is not registered and
// whose last change was made while something of a run was alive there. known is the content that a person
// can compare with.
func (s *Store) Unaccepted(path, digest string) (known Version, waits bool) {
	paths := []string{path}
	if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
		paths = append(paths, target)
	}
	for _, at := range paths {
		if r := s.read(at); r != nil && r.counts(digest) {
			continue
		} else if r != nil {
			return r.Former, true
		}
		if before, changed := s.changing(at, digest); changed {
			return before, true
		}
		if s.unknown(at) {
			return Version{}, true
		}
	}
	if s.read(path) == nil && s.namedAt(path) == nil && s.touched(path) {
		known = Version{Digest: "not known"}
		if err := s.Changed(path, known); err != nil {
			return Version{}, true
		}
		return known, true
	}
	return Version{}, false
}

// Waiting returns the records of files in a folder, or of the file at that path, whose present content
// waits, by path.
func (s *Store) Waiting(folder string) []*Record {
	entries, _ := os.ReadDir(s.records)
	var waiting []*Record
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(s.records, e.Name()))
		r := &Record{}
		if err != nil || json.Unmarshal(data, r) != nil || !sandbox.Within(r.Path, folder) {
			continue
		}
		if now := Read(r.Path); now.Exists() && !r.counts(now.Digest) {
			waiting = append(waiting, r)
		}
	}
	waiting = append(waiting, s.changed(folder)...)
	for _, name := range append([]string{"."}, toolhost.InstructionNames...) { // others that are not known are named by their paths
		path := filepath.Join(folder, name)
		now := Read(path)
		if now.Exists() && now.Kept && s.read(path) == nil && (s.unknown(path) || now.Link != "" && s.Waits(path, now.Digest)) {
			waiting = append(waiting, &Record{Path: path})
		}
	}
	slices.SortFunc(waiting, func(a, b *Record) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(waiting, func(a, b *Record) bool { return a.Path == b.Path })
}

// Inherit gives the files of a copy of a workspace the records of the workspace.
func (s *Store) Inherit(workspace, to string) error {
	entries, _ := os.ReadDir(s.records)
	var errs []error
	if p := s.Partial(workspace); p != nil {
		errs = append(errs, s.SetPartial(to, &Partial{Workspace: to, Known: p.Known}))
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(s.records, e.Name()))
		r := &Record{}
		if err != nil || json.Unmarshal(data, r) != nil {
			continue
		}
		if name, within := disk.Within(workspace, r.Path); within {
			r.Path = filepath.Join(to, name)
			s.mu.Lock()
			errs = append(errs, s.write(r))
			s.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}
