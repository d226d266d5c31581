// Package places compares the guarded places of workspaces before and after what runs do in them:
// files by which programs run outside of the sandbox, or by which agents are instructed. Nothing
// keeps a command from changing them, because git replaces such files when it checks out a branch. Instead
//
//   - each change of a call is named in its result, and
//   - a file that agents read, or that a person has named, and that a run has changed, counts only after a
//     person has accepted it (package trust), or
//   - if the run demands it, the files are put back, apart from those that are only named.
//
// A place is read only if its inode, size or the time of its last change, which no program can set,
// differs from before, or if that time does not tell: the file system does not set it at each write into
// a mapped file, as on a tmpfs, or something that is alive has written to the file before. Where they
// are is known from the search of package guard, so nothing is searched twice. Contents of at most 1 MiB
// are compared.
//
// Of the places by which agents are instructed or set up at most 5,000 of a workspace are compared, upper ones first,
// and as many of the others. If there may be more, results name that, and a file that instructs agents
// counts only if it is known, or was not changed since the first call for which that held, or a person
// has accepted it.
//
// Changes while nothing of a run is alive in a workspace are the user's. All others are those of the runs
// that work there: of two calls at the same time each names what changed during it. Changes of the
// user meanwhile count as those of the runs. If the host dies during a call, the next host
// compares each file that it reads, and all of them at its first call in the workspace.
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
	// maxWorkspaces bounds the workspaces that are remembered while nothing runs in them.
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
	// died are the workspaces in which a host has died, until they are compared.
	died map[string]bool
}

// New returns the Places of a host with its store.
func New(store *trust.Store, log *slog.Logger) *Places {
	p := &Places{store: store, log: log, settled: settled, workspaces: map[string]*workspace{}, died: map[string]bool{}}
	for _, dir := range store.Died() {
		p.died[dir] = true
	}
	return p
}

// Watch is one call, or one process, of a run in a workspace and the other folders in which it may
// write. A nil Watch compares nothing.
type Watch struct {
	places    *Places
	workspace *workspace
	began     time.Time
	changes   []change
	ended     bool
	// others are those of the other folders; elsewhere is set for these.
	others    []*Watch
	elsewhere bool
	// run is the run of the call; lives is set for a process that outlives calls.
	run   string
	lives bool
}

// Start starts to watch what a call of a run, or of none, does in the folders in which guard has found places. A
// nil guard, of a call that writes nothing, is not watched.
func (p *Places) Start(g *guard.Watch, run string) *Watch { return p.start(g, run, false) }

// StartLiving is Start for a process that outlives calls. Take returns the changes while no call of the
// run is open.
func (p *Places) StartLiving(g *guard.Watch, run string) *Watch { return p.start(g, run, true) }

func (p *Places) start(g *guard.Watch, run string, lives bool) *Watch {
	if g == nil {
		return nil
	}
	watch := p.startAt(&Watch{workspace: &workspace{dir: g.Workspace()}, run: run, lives: lives}, g.Places())
	for _, o := range g.Others() {
		watch.others = append(watch.others, p.startAt(&Watch{workspace: &workspace{dir: o.Workspace()}, run: run, lives: lives, elsewhere: true}, o.Places()))
	}
	return watch
}

func (p *Places) startAt(watch *Watch, found guard.Places) *Watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.workspace(watch.workspace.dir)
	p.compare(w, found)
	watch.places, watch.workspace, watch.began = p, w, time.Now()
	w.open = append(w.open, watch)
	if len(w.open) == 1 {
		p.mark(w)
		p.logPeriod(w, w.periods.Start(time.Now()))
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
			found.Names = append(found.Names[:len(found.Names):len(found.Names)], filepath.Clean(name))
		}
	}
	report := w.Finish(found, g.Accepted(), restore)
	for i, o := range w.others {
		report.add(o.Finish(g.Others()[i].Places(), nil, restore))
	}
	return report
}

// Finish is End of one folder with the places that were found, and the absolute paths that the call has
// written as a person has approved.
func (w *Watch) Finish(found guard.Places, accepted []string, restore bool) Report {
	p := w.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ended {
		return Report{}
	}
	w.ended = true
	p.compare(w.workspace, found, accepted...)
	w.workspace.open = slices.DeleteFunc(w.workspace.open, func(o *Watch) bool { return o == w })
	report := w.report(restore)
	if len(w.workspace.open) == 0 && w.workspace.file != nil {
		if left := p.store.Unsaved(w.workspace.dir); left == nil {
			w.workspace.file.Mark(false)
		} else { // a command counts as alive until they are stored
			w.workspace.dirty = true
			p.mark(w.workspace)
		}
		p.logPeriod(w.workspace, w.workspace.periods.End(time.Now()))
	}
	p.forget()
	return report
}

// Take compares while a process is alive, and returns the changes since the last time. restore puts it back.
func (w *Watch) Take(g *guard.Watch, restore bool) Report {
	report := w.take(g.Places(), restore)
	for i, o := range w.others {
		report.add(o.take(g.Others()[i].Places(), restore))
	}
	return report
}

func (w *Watch) take(found guard.Places, restore bool) Report {
	w.places.mu.Lock()
	defer w.places.mu.Unlock()
	if w.ended {
		return Report{}
	}
	w.places.compare(w.workspace, found)
	report := w.report(restore)
	report.partial = false // the results of calls name it
	return report
}

// report returns the changes, once. The places are locked.
func (w *Watch) report(restore bool) Report {
	report := Report{changes: merge(w.changes), partial: w.workspace.partial}
	w.changes = nil
	if restore {
		report.putBack, report.failed = w.places.restore(w.workspace, report.changes)
	}
	if w.elsewhere {
		for _, list := range [][]change{report.changes, report.putBack, report.failed} {
			for i := range list {
				list[i].dir = w.workspace.dir
			}
		}
	}
	return report
}

// see adds a change of a place, unless a call of its run that is open names it.
func (w *Watch) see(c change) {
	if w.lives && slices.ContainsFunc(w.workspace.open, func(o *Watch) bool { return !o.lives && o.run == w.run }) {
		return
	}
	w.changes = append(w.changes, c)
}

// Waits reports whether the content of a file must not count, because a run has changed it, also one
// that is still alive.
func (p *Places) Waits(path, digest string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for dir := range p.died {
		if _, within := disk.Within(dir, path); within {
			p.workspace(dir)
		}
	}
	for _, w := range p.workspaces {
		if name, within := disk.Within(w.dir, path); within && (len(w.open) > 0 || w.fresh && w.before != nil) && w.instructs(name) {
			p.see(w, name)
		}
	}
	return p.store.Waits(path, digest)
}

// Named reports whether a person has named a file by which agents are set up.
func (p *Places) Named(path string) bool {
	_, named := p.store.Named(path)
	return named
}

// ReadAs is Waits for a file of any name that instructs an agent, such as one of a skill. One that counts is
// registered: it is compared from then on.
func (p *Places) ReadAs(path string, data []byte) bool {
	now := trust.Of(data)
	if _, waits := p.store.Unaccepted(path, now.Digest); waits {
		return true
	}
	if err := p.store.Name(path, now); err != nil {
		p.log.Warn("a file that an agent reads is not registered: its later changes count unasked", "path", path, "error", err)
	}
	return false
}

// Inherit gives the files of a copy of a workspace the records of the workspace.
func (p *Places) Inherit(workspace, to string) error { return p.store.Inherit(workspace, to) }

// workspace is the known state of the places of a workspace.
type workspace struct {
	dir     string
	known   map[string]entry // by path within it
	named   map[string]bool  // files that a person has named, and whether they were compared
	file    *trust.Baseline
	periods *trust.Periods
	before  map[string]trust.Version // of a call during which a host has died; nil for none
	fresh   bool                     // nothing was compared yet
	dirty   bool                     // known differs from the file
	// partial reports that there are, or may be, more places than are known; former are the places that were
	// known when that was stored, nil if it was not.
	partial bool
	former  *trust.Partial
	open    []*Watch
}

// workspace returns the known state of a workspace.
func (p *Places) workspace(dir string) *workspace {
	p.used = append(slices.DeleteFunc(p.used, func(d string) bool { return d == dir }), dir)
	w := p.workspaces[dir]
	if w == nil {
		w = &workspace{dir: dir, known: map[string]entry{}, named: map[string]bool{}, periods: p.store.Periods(dir), fresh: true, dirty: true}
		w.file, w.before = p.store.Baseline(dir)
		w.former = p.store.Partial(dir)
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
		p.workspaces[p.used[i]].periods.Close()
		delete(p.workspaces, p.used[i])
		p.used = slices.Delete(p.used, i, i+1)
	}
}

// mark stores that something runs in a workspace.
func (p *Places) mark(w *workspace) {
	if !w.dirty && w.file.Mark(true) {
		return
	}
	if err := w.file.Set(w.dir, w.versions(p.store.Unsaved(w.dir))); err != nil {
		p.log.Error("the guarded places of a workspace cannot be stored: what a call does to them is not known if this host dies", "workspace", w.dir, "error", err)
		return
	}
	w.dirty = false
}

func (p *Places) logPeriod(w *workspace, err error) {
	if err != nil {
		p.log.Error("the time of a call cannot be stored: files that it changes count when they are named for the first time", "workspace", w.dir, "error", err)
	}
}

// instructs reports whether agents are instructed or set up by a file: by its name, or because a person has
// named it.
func (w *workspace) instructs(name string) bool {
	_, named := w.named[name]
	return named || sandbox.PlaceOf(name).Instructs()
}

// versions returns the places that exist, and those whose change is not stored as they were before.
func (w *workspace) versions(unsaved map[string]trust.Version) map[string]trust.Version {
	all := make(map[string]trust.Version, len(w.known))
	for name, e := range w.known {
		if e.version.Exists() {
			all[name] = e.version
		}
	}
	for name, before := range unsaved {
		delete(all, name)
		if before.Exists() {
			all[name] = before
		}
	}
	return all
}

// change is a place that has changed. dir is its folder if that is not the workspace.
type change struct {
	name, dir     string
	before, after trust.Version
	instructs     bool
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
