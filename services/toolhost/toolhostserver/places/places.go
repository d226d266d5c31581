// Package places compares the guarded places of workspaces before and after what runs do in them:
// files by which programs run outside of the sandbox, or by which agents are instructed. Nothing
// keeps a command from changing them, because git replaces such files when it checks out a branch. Instead
//
//   - each change of a call is named in its result, and
//   - a file that agents read, and that a run has changed, counts only after a person has accepted it
//     (package trust), or
//   - if the run demands it, the files are put back, apart from those that are only named.
//
// A place is read only if its inode, size or the time of its last change, which no program can set,
// differs from before, or that time does not tell: the file system does not set it at each write into a mapped file,
// as on a tmpfs, or something that is alive has written to the file before. Where they are is known from the search of package guard, so nothing is
// searched twice. At most 5,000 places of a workspace are compared, upper ones first, and contents of at most
// 1 MiB.
//
// Changes while nothing of a run is alive in a workspace are the user's. All others are those of the runs
// that work there: of two calls at the same time each names what changed during it. Changes of the
// user meanwhile count as those of the runs. If the host dies during a call, the next host
// compares at its first call in the workspace; until then package trust does for each reader.
package places

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

const (
	// maxPlaces bounds the places of a workspace that are compared, maxWorkspaces the workspaces that are
	// remembered while nothing runs in them.
	maxPlaces     = 5_000
	maxWorkspaces = 8
)

// Places are the guarded places of the workspaces of a host. Many goroutines may use it.
type Places struct {
	store *trust.Store
	log   *slog.Logger
	// settled is the age of a file's last change from which a further change has another time.
	settled time.Duration

	// mu is locked while places are compared.
	mu         sync.Mutex
	workspaces map[string]*workspace
	used       []string // keys of workspaces, the last one used last
}

// New returns the Places of a host with its store.
func New(store *trust.Store, log *slog.Logger) *Places {
	return &Places{store: store, log: log, settled: settled, workspaces: map[string]*workspace{}}
}

// Watch is one call, or one process, of a run in a workspace. A nil Watch compares nothing.
type Watch struct {
	places    *Places
	workspace *workspace
	began     time.Time
	changes   []change
	ended     bool
}

// Start starts to watch what a call does in a workspace, in which guard has found places. A
// nil guard, of a call that writes nothing, is not watched.
func (p *Places) Start(g *guard.Watch) *Watch {
	if g == nil {
		return nil
	}
	return p.StartAt(g.Workspace(), g.Places())
}

// StartAt is Start with the places that were found, relative to the workspace.
func (p *Places) StartAt(dir string, found []string) *Watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.workspace(dir)
	p.compare(w, found)
	watch := &Watch{places: p, workspace: w, began: time.Now()}
	w.open = append(w.open, watch)
	if len(w.open) == 1 {
		p.mark(w)
	}
	return watch
}

// End compares after a call, which guard has watched, also the files that the call reports as changed,
// relative to the workspace. restore puts back what may be.
func (w *Watch) End(g *guard.Watch, restore bool, changed []string) Report {
	if w == nil {
		return Report{}
	}
	found := g.Places()
	for _, name := range changed {
		if p := sandbox.PlaceOf(name); p.What != "" && filepath.IsLocal(name) {
			found = append(found[:len(found):len(found)], filepath.Clean(name))
		}
	}
	return w.Finish(found, g.Accepted(), restore)
}

// Finish is End with the places that were found, and the absolute paths that a person or a rule has
// allowed the call to write.
func (w *Watch) Finish(found, accepted []string, restore bool) Report {
	p := w.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ended {
		return Report{}
	}
	w.ended = true
	p.compare(w.workspace, found, accepted...)
	w.workspace.open = slices.DeleteFunc(w.workspace.open, func(o *Watch) bool { return o == w })
	report := Report{changes: merge(w.changes)}
	if restore {
		report.putBack, report.failed = p.restore(w.workspace, report.changes)
	}
	if len(w.workspace.open) == 0 && w.workspace.file != nil {
		w.workspace.file.Mark(false)
	}
	p.forget()
	return report
}

// Waits reports whether the content of a file must not count, because a run has changed it, also one
// that is still alive.
func (p *Places) Waits(path, digest string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workspaces {
		if name, within := disk.Within(w.dir, path); within && len(w.open) > 0 && sandbox.PlaceOf(name).Instructs() {
			p.see(w, name)
		}
	}
	return p.store.Waits(path, digest)
}

// Inherit gives the files of a copy of a workspace the records of the workspace.
func (p *Places) Inherit(workspace, to string) error { return p.store.Inherit(workspace, to) }

// workspace is the known state of the places of a workspace.
type workspace struct {
	dir    string
	known  map[string]entry // by path within it
	file   *trust.Baseline
	before map[string]trust.Version // of a call during which a host has died; nil for none
	fresh  bool                     // nothing was compared yet
	dirty  bool                     // known differs from the file
	open   []*Watch
}

// workspace returns the known state of a workspace.
func (p *Places) workspace(dir string) *workspace {
	p.used = append(slices.DeleteFunc(p.used, func(d string) bool { return d == dir }), dir)
	w := p.workspaces[dir]
	if w == nil {
		w = &workspace{dir: dir, known: map[string]entry{}, fresh: true, dirty: true}
		w.file, w.before = p.store.Baseline(dir)
		p.workspaces[dir] = w
	}
	return w
}

// forget drops the workspaces that were not used for the longest time.
func (p *Places) forget() {
	for i := 0; len(p.used)-i > maxWorkspaces; {
		if w := p.workspaces[p.used[i]]; len(w.open) > 0 {
			i++
			continue
		}
		p.workspaces[p.used[i]].file.Close()
		delete(p.workspaces, p.used[i])
		p.used = slices.Delete(p.used, i, i+1)
	}
}

// mark stores that something runs in a workspace.
func (p *Places) mark(w *workspace) {
	if !w.dirty && w.file.Mark(true) {
		return
	}
	if err := w.file.Set(w.dir, w.versions()); err != nil {
		p.log.Error("the guarded places of a workspace cannot be stored: what a call does to them is not known if this host dies", "workspace", w.dir, "error", err)
		return
	}
	w.dirty = false
}

// versions returns the places that exist.
func (w *workspace) versions() map[string]trust.Version {
	all := make(map[string]trust.Version, len(w.known))
	for name, e := range w.known {
		if e.version.Exists() {
			all[name] = e.version
		}
	}
	return all
}

// change is a place that has changed.
type change struct {
	name          string
	before, after trust.Version
}

// none reports whether nothing has changed.
func (c change) none() bool {
	return c.before.Digest == c.after.Digest && c.before.Link == c.after.Link && c.before.Executable == c.after.Executable
}

// merge returns one change for each place, from its first state to its last, by name.
func merge(changes []change) []change {
	var merged []change
	for _, c := range changes {
		i := slices.IndexFunc(merged, func(m change) bool { return m.name == c.name })
		if i < 0 {
			merged = append(merged, c)
			continue
		}
		merged[i].after = c.after
	}
	merged = slices.DeleteFunc(merged, change.none)
	slices.SortFunc(merged, func(a, b change) int { return strings.Compare(a.name, b.name) })
	return merged
}

// absolute returns the path of a place.
func (w *workspace) absolute(name string) string { return filepath.Join(w.dir, name) }
