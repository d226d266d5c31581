// Package guard keeps calls of agents from choosing what programs git runs for its user. It
// takes a snapshot of the repositories of a workspace before a call, compares it afterwards,
// when no process of the call is alive, and puts back what package gitguard decides.
//
// Repositories are found in the workspace, in up to 100,000 of its folders, upper ones
// first, with their submodules and linked worktrees, and the one above the workspace. The
// workspace's own is always among them. What a workspace names elsewhere is compared only where the call
// can write: otherwise another has written it. Folders are read again if they have changed.
//
// While the processes of a call are alive, the places of its snapshot are watched, from 50 ms after its
// start on. What Compare decides is put back immediately, what a repository that the call makes has, or an
// empty file, after 40 ms: git or another program may be about to complete it. An entry that leads git
// to no usable repository is left. Nothing else is touched. The kernel reports changes by inotify, in
// folders, because git replaces files. What no event reports is found by reading again, every 250 ms or, in
// large workspaces, so seldom that it takes at most 2 % of a processor. If the kernel refuses to report them,
// the log has a warning, and every 50 ms is read again. A call for which something is put back 20 times is stopped.
// Several calls in one workspace all count it, because it is not known which one has done it.
//
// What a call has written there is kept in the folder kept of the host. The snapshot before a call
// is in a file, which is marked at its end, so that the next host compares after this one has died.
//
// Of two calls at the same time in one workspace, the later is compared with the state
// before the first. Changes of the user during a call count as those of the call.
package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

// Guard guards the repositories in which a tool host works. Many goroutines may use it.
type Guard struct {
	// calls has a file for each call that runs, kept what calls have written.
	calls, kept string
	hidden      string
	sync        bool
	log         *slog.Logger
	user        func() user
	finder      finder
	notifier    notifier
	pace        pace

	// mu is locked while repositories are read and put back.
	mu   sync.Mutex
	open []*Watch // in the order of their start
	// spare are files of calls that have ended, for the next calls in the same workspaces.
	spare []*record
}

// Config configures a Guard.
type Config struct {
	// Dir is the host's folder for files of the guard.
	Dir string
	// Hidden is a folder in which no repositories are looked for, without links; empty for
	// none.
	Hidden string
	// Sync requires that snapshots are on disk before a call starts.
	Sync   bool
	Logger *slog.Logger
}

func New(c Config) *Guard {
	return &Guard{
		calls: filepath.Join(c.Dir, "guard"), kept: filepath.Join(c.Dir, "kept"),
		hidden: c.Hidden, sync: c.Sync, log: c.Logger, user: findUser, pace: pace{head: head, round: round, poll: poll},
	}
}

// Close releases the guard's files. No call is alive.
func (g *Guard) Close() { g.notifier.close() }

// pace is how often the repositories of a call are compared while it is alive.
type pace struct{ head, round, poll time.Duration }

var ErrWorkspace = errors.New("the workspace cannot be opened")

// Watch is the guard of a call. A nil Watch guards nothing.
type Watch struct {
	guard     *Guard
	workspace string
	before    *gitguard.Snapshot
	record    *record  // of the snapshot; nil for none
	accepted  []string // Guard.mu guards it
	places    Places   // that the last search found
	quick     bool
	reach     Reach
	// others are those of the other folders in which the call may write. first is the one of the workspace for such a
	// one, which has not the places of the workspace.
	others []*Watch
	first  *Watch
	// run is the run of the call; lives is set for a process that outlives calls, whose changes the next
	// result of the run names.
	run   string
	lives bool
	// began is the time of the snapshot, partial that it does not have all folders.
	began   time.Time
	partial bool
	alive   *alive // nil if no process can be alive
}

// Reach is where the processes of a call can write, apart from the workspace and the git folders elsewhere that are for it.
type Reach struct {
	// Everywhere: nothing confines them.
	Everywhere bool
	// Folders are those that the sandbox lets them write.
	Folders []string
}

// ReachOf returns the reach of processes with a level and configuration.
func ReachOf(level harnessv1.SandboxLevel, c *harnessv1.SandboxConfig) Reach {
	return Reach{Everywhere: level <= sandbox.Off, Folders: c.GetWrite()}
}

// has reports whether a path is in the reach of a call in a workspace.
func (r Reach) has(workspace, path string) bool {
	within := func(folder string) bool { return sandbox.Within(path, folder) }
	return r.Everywhere || within(workspace) || slices.ContainsFunc(r.Folders, within)
}

// Start starts to guard a call in a workspace, and in the other folders in which it may write. The
// snapshots are stored when it returns, so that Recover compares if the host dies.
func (g *Guard) Start(workspace string, reach Reach) (*Watch, error) {
	workspace = filepath.Clean(workspace)
	writable := reach.Folders
	if !reach.Everywhere {
		reach.Folders = slices.Concat(writable, git.FoldersOutside(workspace))
	}
	w, err := g.startAlive(&Watch{guard: g, workspace: workspace, reach: reach})
	if err != nil {
		return nil, err
	}
	for _, folder := range outside(workspace, writable) {
		switch other, err := g.startAlive(&Watch{guard: g, workspace: folder, reach: reach, first: w}); {
		case errors.Is(err, ErrWorkspace): // it is gone, or no folder
		case err != nil:
			_ = w.End()
			return nil, err
		default:
			w.others = append(w.others, other)
		}
	}
	return w, nil
}

// outside returns the folders that are not within the workspace, or one another.
func outside(workspace string, folders []string) []string {
	var all []string
	for i, folder := range folders {
		folder = filepath.Clean(folder)
		covered := func(other string) bool { return folder != other && sandbox.Within(folder, filepath.Clean(other)) }
		if !sandbox.Within(folder, workspace) && !slices.ContainsFunc(folders, covered) && !slices.Contains(folders[:i], folder) {
			all = append(all, folder)
		}
	}
	return all
}

// instructions returns the files that instruct agents in the folders from one above a workspace down to it.
func instructions(folder, workspace string) []string {
	var files []string
	for at := filepath.Dir(workspace); len(at) > len(folder) && sandbox.Within(at, folder); at = filepath.Dir(at) {
		for _, name := range toolhost.InstructionNames {
			files = append(files, strings.TrimPrefix(at, strings.TrimSuffix(folder, "/")+"/")+"/"+name)
		}
	}
	return files
}

// startAlive starts a watch of a folder in which processes can be alive.
func (g *Guard) startAlive(w *Watch) (*Watch, error) {
	if err := g.start(w); err != nil {
		return nil, err
	}
	if err := g.store(w); err != nil {
		w.drop()
		return nil, fmt.Errorf("snapshot of the repositories: %w", err)
	}
	g.mu.Lock()
	w.alive = &alive{end: make(chan struct{}), ended: make(chan struct{}), poke: make(chan struct{}, 1)}
	g.mu.Unlock()
	go w.watchAlive() // End waits for it
	return w, nil
}

// StartWrite starts to guard a call that writes single files. It looks for no repository
// that was not known before, and stores nothing.
func (g *Guard) StartWrite(workspace string) (*Watch, error) {
	w := &Watch{guard: g, workspace: filepath.Clean(workspace), quick: true}
	return w, g.start(w)
}

// start takes the snapshot of a watch.
func (g *Guard) start(w *Watch) error {
	folder, err := disk.OpenFolder(w.workspace)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWorkspace, err)
	}
	_ = folder.Close()
	w.began = time.Now()
	found := g.find(w)
	w.partial = len(found.rest) > 0
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.before, err = g.snapshot(w, found, nil); err != nil {
		return err
	}
	for _, other := range slices.Backward(g.open) {
		w.before = w.before.Since(other.before)
	}
	w.before.Workspace, w.before.Partial = w.workspace, w.partial
	g.open = append(g.open, w)
	return nil
}

func (g *Guard) find(w *Watch) found {
	f := g.finder.find(w.workspace, g.hidden, w.quick)
	w.places = f.places
	if w.first != nil {
		within := w.first.workspace
		w.places.Names = slices.DeleteFunc(append(instructions(w.workspace, within), f.places.Names...), func(name string) bool {
			return sandbox.Within(w.workspace+"/"+name, within)
		})
	}
	if len(f.rest) > 0 {
		g.log.Warn("too many folders: not all of them are searched for repositories", "workspace", w.workspace, "searched", maxFolders)
	}
	return f
}

// snapshot returns the repositories of a workspace.
func (g *Guard) snapshot(w *Watch, f found, before *gitguard.Snapshot) (*gitguard.Snapshot, error) {
	a, err := newAccess(w.workspace)
	if err != nil {
		return nil, err
	}
	defer a.close()
	return take(a, w.workspace, w.reach, f, before, g.user)
}

// Holds reports whether a path, absolute and without links, is compared.
func (w *Watch) Holds(path string) bool {
	if w == nil {
		return false
	}
	w.guard.mu.Lock() // an approval in another call changes the former state
	defer w.guard.mu.Unlock()
	return w.before.Holds(path)
}

// Accept leaves a path as the call has written it: a person has approved that.
func (w *Watch) Accept(path string) {
	if w != nil {
		w.guard.mu.Lock()
		defer w.guard.mu.Unlock()
		w.accepted = append(w.accepted, path)
	}
}

// Workspace is the folder that is guarded.
func (w *Watch) Workspace() string { return w.workspace }

// Places returns the guarded places of the workspace, apart from those of git: as
// they were at the start, and after End as they are then.
func (w *Watch) Places() Places { return w.places }

// Others returns the watches of the other folders in which the call may write.
func (w *Watch) Others() []*Watch { return w.others }

// Refresh searches for places again.
func (w *Watch) Refresh() {
	for _, o := range w.all() {
		_ = o.guard.find(o)
	}
}

// all returns the watch and those of other folders; none for nil.
func (w *Watch) all() []*Watch {
	if w == nil {
		return nil
	}
	return append([]*Watch{w}, w.others...)
}

// Accepted returns the paths that Accept has left.
func (w *Watch) Accepted() []string { return w.accepted }

// End compares and puts back. It returns a note about it for the result of the call; empty if
// nothing was put back. No process of the call is alive.
func (w *Watch) End() string {
	var notes []string
	for _, o := range w.all() {
		if note := o.end(); note != "" {
			notes = append(notes, note)
		}
	}
	return strings.Join(notes, " ")
}

// end ends the watch of one folder.
func (w *Watch) end() string {
	if w.alive != nil {
		close(w.alive.end)
		<-w.alive.ended
	}
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		found := w.guard.find(w)
		note := w.sweep(&found)
		w.guard.mu.Lock()
		text, err := w.guard.putBack(w, found)
		text = strings.TrimSpace(text + " " + note)
		switch {
		case err == nil:
			w.remove()
		case time.Now().After(end):
			w.guard.log.Error("what a call did to repositories is compared only when the host starts again", "workspace", w.workspace, "error", err)
			w.record.leave()
			w.record = nil
			w.remove()
			text, err = w.text(nil, nil), nil
		}
		w.guard.mu.Unlock()
		if err == nil {
			return text
		}
	}
}

// putBack compares, and puts back. mu is locked. The error means that not everything could be
// read: nothing was put back.
func (g *Guard) putBack(w *Watch, f found) (string, error) {
	a, err := newAccess(w.workspace)
	switch {
	case errors.Is(err, ErrWorkspace):
		return w.text(nil, nil), nil // it is gone
	case err != nil:
		return "", err
	}
	defer a.close()
	after, err := take(a, w.workspace, w.reach, f, w.before, g.user)
	if err != nil {
		return "", err
	}
	after.Elsewhere = w.first != nil
	for _, path := range w.accepted {
		w.before.Accept(after, path)
		for _, other := range g.open {
			other.before.Accept(after, path)
		}
	}
	fixes := gitguard.Compare(w.before, after)
	var failed []string
	if len(fixes) > 0 {
		failed = g.apply(a, w, fixes)
		g.share(w, fixes)
	}
	later := gitguard.LaterText(gitguard.Later(w.before, after))
	return strings.TrimSpace(w.text(fixes, failed) + " " + later), nil
}

// text returns the note about the files that were put back at the end of a call, and before. mu is locked.
func (w *Watch) text(fixes []gitguard.Fix, failed []string) string {
	if w.alive == nil {
		return gitguard.Text(fixes) + gitguard.FailedText(failed)
	}
	w.alive.failed = append(w.alive.failed, failed...)
	return w.alive.text(fixes)
}

// apply keeps what fixes replace, and puts back. It returns the names of what cannot be put back. mu is
// locked.
func (g *Guard) apply(a *access, w *Watch, fixes []gitguard.Fix) (failed []string) {
	place := ""
	keep := func() {
		var err error
		if place, err = g.keep(a, fixes); err != nil {
			g.log.Error("what a call wrote into a repository is not kept", "error", err)
		}
	}
	large := slices.ContainsFunc(fixes, func(f gitguard.Fix) bool { return f.Was.Digest != "" })
	if large { // it is copied from where it is
		keep()
	}
	for _, f := range fixes {
		if err := a.apply(f); err != nil {
			g.log.Error("a file of a repository cannot be put back", "path", f.Path, "error", err)
			failed = append(failed, f.Names...)
		}
	}
	if !large {
		keep()
	}
	g.log.Warn("a call changed what git runs programs by; it is put back", "workspace", w.workspace, "kept", place, "changes", gitguard.Text(fixes))
	return failed
}

// drop removes a watch of one folder without comparing.
func (w *Watch) drop() {
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	w.remove()
}

// remove ends a watch. mu is locked.
func (w *Watch) remove() {
	w.guard.open = slices.DeleteFunc(w.guard.open, func(o *Watch) bool { return o == w })
	if w.record != nil {
		w.guard.release(w.record)
	}
}

// Recover compares after the calls of a host that has died. No process of these is alive.
func (g *Guard) Recover() {
	files, _ := filepath.Glob(filepath.Join(g.calls, "*"))
	slices.Sort(files)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, file := range files {
		if g.uses(file) {
			continue
		}
		data, err := os.ReadFile(file)
		before := &gitguard.Snapshot{}
		if err == nil && json.Unmarshal(data, before) == nil {
			before = before.Clone() // without nil maps
			w := &Watch{guard: g, workspace: before.Workspace, before: before, partial: before.Partial}
			if info, err := os.Stat(file); err == nil {
				w.began = info.ModTime().Add(-settled)
			}
			f := g.find(w)
			w.leave(&f)
			if _, err := g.putBack(w, f); err != nil {
				g.log.Error("what a call of an earlier host did to repositories cannot be compared yet", "workspace", w.workspace, "error", err)
				continue
			}
		}
		_ = os.Remove(file)
	}
}

// uses reports whether a file is a record of this guard. mu is locked.
func (g *Guard) uses(file string) bool {
	return slices.ContainsFunc(g.open, func(w *Watch) bool { return w.record != nil && (w.record.path == file || w.record.path+".new" == file) }) ||
		slices.ContainsFunc(g.spare, func(r *record) bool { return r.path == file })
}
