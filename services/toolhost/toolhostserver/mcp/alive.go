package mcp

import (
	"errors"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
)

// maxLeft bounds the runs of which changes are kept that no result has named yet.
const maxLeft = 256

// alive are the processes that are alive, and what those that have ended have changed. The zero value has none.
type alive struct {
	mu sync.Mutex
	// processes and left are by the key of their run. mu guards them, and the ends of processes.
	processes map[string][]*server
	left      map[string]notes
}

// notes are changes that the next result of a run names: of files by which git runs programs, and of guarded places.
type notes struct{ note, changed string }

func (p *notes) add(o notes) {
	p.note = strings.TrimSpace(p.note + " " + o.note)
	p.changed = strings.TrimSpace(p.changed + " " + o.changed)
}

// server is a process whose workspace is watched until its end.
type server struct {
	run     string
	git     *guard.Watch
	changes *places.Watch
	restore bool
}

// watch starts to watch the workspace of a process of a run, and the other folders in which it may write. stop stops the process.
func (s *Servers) watch(workspace, run string, reach guard.Reach, restore bool, stop func()) (*server, error) {
	git, err := s.config.Guard.Start(workspace, reach)
	if errors.Is(err, guard.ErrWorkspace) {
		return nil, nil //nolint:nilnil // it is gone: there is nothing to watch
	}
	if err != nil {
		return nil, err
	}
	git.Lives(run)
	git.StopBy(stop)
	w := &server{run: run, git: git, changes: s.config.Places.StartLiving(git, run), restore: restore}
	s.alive.mu.Lock()
	defer s.alive.mu.Unlock()
	if s.alive.processes == nil {
		s.alive.processes, s.alive.left = map[string][]*server{}, map[string]notes{}
	}
	s.alive.processes[run] = append(s.alive.processes[run], w)
	return w, nil
}

// take returns the notes of a run, once.
func (a *alive) take(run string) (note, changed string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.left[run]
	delete(a.left, run)
	for _, w := range a.processes[run] {
		w.git.Refresh()
		all.add(notes{w.git.Take(), w.changes.Take(w.git, w.restore).Text()})
	}
	return all.note, all.changed
}

// end ends the watch of a process of which nothing is left. It returns what no result has named.
func (a *alive) end(w *server) string {
	if w == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p := notes{note: w.git.End()}
	p.changed = w.changes.End(w.git, w.restore, nil).Text()
	for i, o := range a.processes[w.run] {
		if o == w {
			a.processes[w.run] = append(a.processes[w.run][:i:i], a.processes[w.run][i+1:]...)
		}
	}
	if len(a.processes[w.run]) == 0 {
		delete(a.processes, w.run)
	}
	if p == (notes{}) {
		return ""
	}
	if left, known := a.left[w.run]; known || len(a.left) < maxLeft {
		left.add(p)
		a.left[w.run] = left
	}
	return strings.TrimSpace(p.note + " " + p.changed)
}

// forget drops the notes of a run that has ended.
func (a *alive) forget(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.left, run)
}
