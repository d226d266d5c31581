package trust

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// Partial is a workspace in which not all files that agents read are compared, because there are, or may be,
// too many. One that is not known waits, unless it is older.
type Partial struct {
	Workspace string `json:"workspace"`
	// Since is when that began: files that were changed last before it are the user's.
	Since time.Time `json:"since"`
	// Known are the files that are compared, sorted, by their paths in the workspace.
	Known []string `json:"known"`
}

// Waits reports whether a file in the workspace that agents read waits, because it is not known. None
// waits for nil.
func (p *Partial) Waits(name string) bool {
	if p == nil || !instructs(name) {
		return false
	}
	if _, known := slices.BinarySearch(p.Known, name); known {
		return false
	}
	for at := name; at != "."; at = filepath.Dir(at) { // a folder may have been moved there
		info, err := os.Lstat(filepath.Join(p.Workspace, at))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !lastChange(info).Before(p.Since) {
			return true
		}
	}
	return false
}

func (s *Store) partialFile(workspace string) string {
	return filepath.Join(s.partial, content.Digest([]byte(workspace))[:32]+".json")
}

// Partial returns the stored state of a workspace; nil if all of it is compared.
func (s *Store) Partial(workspace string) *Partial {
	data, err := os.ReadFile(s.partialFile(workspace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p := &Partial{}
	if err != nil || json.Unmarshal(data, p) != nil || p.Workspace != workspace {
		return &Partial{Workspace: workspace}
	}
	return p
}

// SetPartial stores the state of a workspace; nil means that all of it is compared.
func (s *Store) SetPartial(workspace string, p *Partial) error {
	if p == nil {
		return os.Remove(s.partialFile(workspace))
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.partial, 0o700); err != nil {
		return err
	}
	return disk.Replace(s.partialFile(workspace), data)
}

// unknown reports whether a file without a record waits because its workspace is compared in part.
func (s *Store) unknown(path string) bool {
	entries, _ := os.ReadDir(s.partial)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(s.partial, e.Name()))
		p := &Partial{}
		if err != nil || !strings.HasSuffix(e.Name(), ".json") || json.Unmarshal(data, p) != nil {
			continue
		}
		if name, within := disk.Within(p.Workspace, path); within && p.Waits(name) {
			return true
		}
	}
	return false
}
