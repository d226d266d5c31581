package trust

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// First bytes of the file of a workspace. While a command runs there it is a JSON object.
const (
	running = '{'
	ended   = '-'
)

// Baseline is the file of a workspace in which commands run: its places when they were compared
// last. One goroutine at a time uses it.
type Baseline struct {
	path string
	file *os.File
}

// state is the content of such a file.
type state struct {
	Workspace string             `json:"workspace"`
	Places    map[string]Version `json:"places"` // by path within it
}

func (s *Store) baselineFile(workspace string) string {
	return filepath.Join(s.watched, content.Digest([]byte(workspace))[:32])
}

// Baseline returns the file of a workspace, which it opens at the first Set. before has its places
// before a command during which a host died; nil for no such command.
func (s *Store) Baseline(workspace string) (w *Baseline, before map[string]Version) {
	w = &Baseline{path: s.baselineFile(workspace)}
	if data, err := os.ReadFile(w.path); err == nil {
		if st := runningState(data); st != nil && st.Workspace == workspace {
			before = st.Places
		}
	}
	return w, before
}

// runningState returns the state in a file, nil unless a command runs.
func runningState(data []byte) *state {
	st := &state{}
	if len(data) == 0 || data[0] != running || json.Unmarshal(data, st) != nil {
		return nil
	}
	return st
}

// Set stores the places, while a command runs.
func (w *Baseline) Set(workspace string, places map[string]Version) error {
	data, err := json.Marshal(state{Workspace: workspace, Places: places})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(w.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(w.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = os.Rename(w.path+".new", w.path)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	w.Close()
	w.file = f
	return nil
}

// Mark stores whether a command runs. It returns false if nothing is set.
func (w *Baseline) Mark(runs bool) bool {
	if w.file == nil {
		return false
	}
	first := byte(ended)
	if runs {
		first = running
	}
	_, err := w.file.WriteAt([]byte{first}, 0)
	return err == nil
}

// Close closes the file, which remains unchanged.
func (w *Baseline) Close() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}

// running returns the states of the workspaces in which commands run.
func (s *Store) running() []*state {
	entries, _ := os.ReadDir(s.watched)
	var states []*state
	for _, e := range entries {
		if st := readRunning(filepath.Join(s.watched, e.Name())); st != nil {
			states = append(states, st)
		}
	}
	return states
}

// readRunning returns the state in a file, of which it reads one byte unless a command runs; nil then.
func readRunning(path string) *state {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var first [1]byte
	if _, err := f.ReadAt(first[:], 0); err != nil || first[0] != running {
		return nil
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	return runningState(data)
}

// Died returns the workspaces in which commands run, for a host that has started none: those of a host that has
// died. What it left there has changed until now at the latest.
func (s *Store) Died() []string {
	var died []string
	for _, st := range s.running() {
		died = append(died, st.Workspace)
		p := s.Periods(st.Workspace)
		_ = p.open(time.Now()) // without it later changes wait too
		p.Close()
	}
	return died
}

// changing reports whether a command that runs has changed a file that agents read. before is
// what it was.
func (s *Store) changing(path, digest string) (before Version, changed bool) {
	for _, st := range s.running() {
		name, within := disk.Within(st.Workspace, path)
		if !within {
			continue
		}
		known, compared := st.Places[name]
		v, registered := s.Named(path)
		switch {
		case registered && v.Digest == digest: // also for a link that leads out of the workspace
			continue
		case registered && !compared:
			known = v
		case !registered && !instructs(name):
			continue
		}
		if known.Digest != digest {
			return known, true
		}
	}
	return Version{}, false
}

// changed returns the files in a folder that commands that run have changed, as far as these
// were there before.
func (s *Store) changed(folder string) []*Record {
	var records []*Record
	for _, st := range s.running() {
		for name, before := range st.Places {
			path := filepath.Join(st.Workspace, name)
			if _, within := disk.Within(folder, path); !within || !instructs(name) && s.namedAt(path) == nil {
				continue
			}
			if now := Read(path); now.Exists() && now.Digest != before.Digest && s.read(path) == nil {
				records = append(records, &Record{Path: path, Former: before, Accepted: []string{before.Digest}})
			}
		}
	}
	return records
}
