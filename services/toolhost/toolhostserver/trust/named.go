package trust

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

const (
	// maxNamed bounds the files that are registered; those that were read longest ago go first.
	maxNamed = 1024
	// settledNames is the age of a change of the folder of names from which a further one has another time.
	settledNames = 2 * time.Second
)

// registration is a registered file.
type registration struct {
	Path string `json:"path"`
	// Version is the content that a person has named last.
	Version Version `json:"version"`
}

// names are the registered files as far as this process has read them.
type names struct {
	mu      sync.Mutex
	changed time.Time         // of the folder
	sure    bool              // a folder with this time has no other names
	paths   map[string]string // by the name in the folder
}

func (s *Store) nameFile(path string) string {
	return filepath.Join(s.named, content.Digest([]byte(path))[:32]+".json")
}

// Name registers a file that a person has named with the content that counts: from now on it is compared
// as one by which agents are set up, whatever its name is.
func (s *Store) Name(path string, v Version) error {
	if n := s.namedAt(path); n != nil && n.Version.Digest == v.Digest {
		now := time.Now()
		return os.Chtimes(s.nameFile(path), now, now)
	}
	data, err := json.Marshal(registration{Path: path, Version: v})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.named, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.named, ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.nameFile(path))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	s.forgetNames()
	return nil
}

// forgetNames removes the names that are too many.
func (s *Store) forgetNames() {
	entries, _ := os.ReadDir(s.named)
	if len(entries) <= maxNamed {
		return
	}
	type file struct {
		name string
		read time.Time
	}
	var all []file
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			all = append(all, file{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return a.read.Compare(b.read) })
	for _, a := range all[:max(0, len(all)-maxNamed)] {
		_ = os.Remove(filepath.Join(s.named, a.name))
	}
}

// namedAt returns the registration of a path; nil for none.
func (s *Store) namedAt(path string) *registration {
	data, err := os.ReadFile(s.nameFile(path))
	n := &registration{}
	if err != nil || json.Unmarshal(data, n) != nil || n.Path != path {
		return nil
	}
	return n
}

// Named returns the content of a registered file that a person has named last.
func (s *Store) Named(path string) (v Version, ok bool) {
	if n := s.namedAt(path); n != nil {
		return n.Version, true
	}
	return Version{}, false
}

// NamedIn returns the registered files in a folder, relative to it. It reads the names again only
// if some have been added or removed.
func (s *Store) NamedIn(folder string) []string {
	info, err := os.Stat(s.named)
	if err != nil {
		return nil
	}
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	if !s.names.sure || !info.ModTime().Equal(s.names.changed) {
		s.names.changed, s.names.sure = info.ModTime(), time.Since(info.ModTime()) > settledNames
		s.readNames()
	}
	var in []string
	for _, path := range s.names.paths {
		if name, within := disk.Within(folder, path); within {
			in = append(in, name)
		}
	}
	return in
}

// readNames reads the names that are new. The caller has locked names.
func (s *Store) readNames() {
	entries, _ := os.ReadDir(s.named)
	paths := make(map[string]string, len(entries))
	for _, e := range entries {
		path := s.names.paths[e.Name()]
		if path == "" && strings.HasSuffix(e.Name(), ".json") {
			n := &registration{}
			if data, err := os.ReadFile(filepath.Join(s.named, e.Name())); err == nil && json.Unmarshal(data, n) == nil {
				path = n.Path
			}
		}
		if path != "" {
			paths[e.Name()] = path
		}
	}
	s.names.paths = paths
}
