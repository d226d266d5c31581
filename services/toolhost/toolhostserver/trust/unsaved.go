package trust

import (
	"maps"
	"os"
	"sync"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// unsavedRecords are the records that could not be stored, by path.
type unsavedRecords struct {
	mu      sync.Mutex
	records map[string]*Record
}

func (u *unsavedRecords) get(path string) *Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r := u.records[path]; r != nil {
		return &Record{Path: path, Former: r.Former, Accepted: r.Accepted}
	}
	return nil
}

func (u *unsavedRecords) set(r *Record, is bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !is {
		delete(u.records, r.Path)
		return
	}
	if u.records == nil {
		u.records = map[string]*Record{}
	}
	u.records[r.Path] = r
}

func (u *unsavedRecords) all() map[string]*Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.records)
}

// Unsaved tries again to store the records of a folder that could not be stored, and returns those that are
// left, by the path in the folder, with the versions of the files before.
func (s *Store) Unsaved(folder string) map[string]Version {
	var left map[string]Version
	for path, r := range s.unsaved.all() {
		name, within := disk.Within(folder, path)
		if !within {
			continue
		}
		s.mu.Lock()
		_, err := os.Lstat(s.file(path))
		if err == nil { // another process has stored one since
			s.unsaved.set(r, false)
		} else {
			err = s.write(r)
		}
		s.mu.Unlock()
		if err == nil {
			continue
		}
		if left == nil {
			left = map[string]Version{}
		}
		left[name] = r.Former
	}
	return left
}
