package guard

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

const (
	// head is how long a call is not watched. Most commands end before, and the comparison at their end
	// comes sooner than one by the watch.
	head = 50 * time.Millisecond
	// round is the time between two comparisons without an event: for writes into the memory
	// of a file, and repositories that the call makes in folders that are not watched.
	round = 250 * time.Millisecond
	// poll is that time if the kernel cannot report changes.
	poll = 50 * time.Millisecond
	// share bounds what rounds cost: a comparison takes at most this part of the time between two.
	share = 50
	// grace is how long a file may be empty, which a program may be about to write, and a repository
	// that the call makes may be incomplete.
	grace = 40 * time.Millisecond
	// breath bounds the pause between two comparisons by events, which is as long as a comparison.
	breath = 10 * time.Millisecond
	// maxRestores bounds how often something is put back while a call is alive. Then it is stopped:
	// a command that writes it again and again wins some of the time.
	maxRestores = 20
)

// ErrStopped is the cause of the end of a call that did not stop to change what git runs programs by.
var ErrStopped = errors.New("it changed what git runs programs by again and again")

// alive watches the repositories of a call while its processes are alive.
type alive struct {
	end, ended chan struct{}
	// poke has one element if another call has put something back for this one.
	poke chan struct{}

	// Guard.mu guards the fields below.
	fixes    []gitguard.Fix // that were put back, for the next note
	restores int
	stopped  bool
	failed   []string
	tell     func(note string)
	// stop stops the call, which has not been stopped yet; nil if it cannot be stopped.
	stop func()
}

// watchAlive watches until close of end.
func (w *Watch) watchAlive() {
	a := w.alive
	defer close(a.ended)
	timer := time.NewTimer(w.guard.pace.head)
	defer timer.Stop()
	select {
	case <-a.end:
		return
	case <-timer.C:
	}
	l := lookout{Watch: w, timer: timer}
	if s, err := w.guard.notifier.subscribe(); err == nil {
		l.subscription = s
		defer s.close()
	} else {
		l.polls(err)
	}
	for what := folders; what != stopped; what = l.next() {
		l.compare(what)
	}
}

// lookout is the loop of a call that is watched.
type lookout struct {
	*Watch
	subscription *subscription // nil if changes are polled
	timer        *time.Timer
	cost         time.Duration // of the last comparison, which ended at compared
	compared     time.Time
	// left are the paths that the last comparison has left unchanged, since when.
	left map[string]time.Time
}

// stopped is what next returns at the end of the call.
const stopped news = 255

// polls makes the lookout read again and again, because the kernel does not report changes.
func (l *lookout) polls(why error) {
	if l.subscription != nil {
		l.subscription.close()
		l.subscription = nil
	}
	l.guard.log.Warn("changes of repositories are found by reading them again and again, which takes more time: "+
		"let the user watch more folders (fs.inotify.max_user_watches and max_user_instances)", "workspace", l.workspace, "error", why)
}

// next waits for what to compare.
func (l *lookout) next() news {
	period := max(l.guard.pace.round, share*l.cost)
	var ready chan struct{}
	if l.subscription != nil {
		ready = l.subscription.ready
	} else {
		period = max(l.guard.pace.poll, 4*l.cost)
	}
	if len(l.left) > 0 {
		period = min(period, grace)
	}
	l.timer.Reset(period)
	for {
		select {
		case <-l.alive.end:
			return stopped
		case <-l.timer.C:
			return folders
		case <-l.alive.poke:
			l.report()
		case <-ready:
			if gap := min(l.cost, breath) - time.Since(l.compared); gap > 0 { // a busy repository does not take all of a processor
				select {
				case <-l.alive.end:
					return stopped
				case <-time.After(gap):
				}
			}
			return l.subscription.take()
		}
	}
}

// compare puts back the changes of the call, and sets the places to watch.
func (l *lookout) compare(what news) {
	if what == nothing {
		return
	}
	start := time.Now()
	defer func() { l.cost, l.compared = time.Since(start), time.Now() }()
	for tries := 0; ; tries++ {
		places, sure := l.compareOnce(what == folders)
		if !sure {
			places, _ = l.compareOnce(true)
		}
		l.report()
		if l.subscription == nil || places == nil {
			return
		}
		added, err := l.subscription.watch(places)
		if err != nil {
			l.polls(err)
		}
		if !added || tries == 3 {
			return
		}
		what = folders // it may have changed before it was watched
	}
}

// compareOnce compares while the call is alive, and puts back. It returns the places to watch; nil if what
// there is could not be read. It is not sure if repositories have to be searched for.
func (l *lookout) compareOnce(search bool) (watch map[string]*place, sure bool) {
	g := l.guard
	found := g.finder.find(l.workspace, g.hidden, !search)
	g.mu.Lock()
	defer g.mu.Unlock()
	a, err := newAccess(l.workspace)
	if err != nil {
		return nil, true
	}
	defer a.close()
	l.leave(&found)
	now, err := take(a, l.workspace, l.reach, found, l.before, g.user)
	if err != nil {
		return nil, true
	}
	now.Elsewhere = l.first != nil
	sure = true
	left := map[string]time.Time{}
	fixes := slices.DeleteFunc(gitguard.Compare(l.before, now), func(f gitguard.Fix) bool {
		switch {
		case g.isApproved(f.Path) || leadsNowhere(f.Path, now.Target(f.Path)):
			return true
		case !f.Made && !f.Unfinished():
			return false
		}
		since, known := l.left[f.Path]
		if !known {
			since = time.Now()
		}
		late := time.Since(since) >= grace
		if late && f.Made && !search {
			sure = false
		}
		if !late || !sure {
			left[f.Path] = since
		}
		return !late || !sure
	})
	l.left = left
	if len(fixes) > 0 {
		g.restore(a, l.Watch, fixes)
	}
	return places(l.before, now), sure
}

// isApproved reports whether a person has approved what a call writes that is not compared yet. mu is
// locked.
func (g *Guard) isApproved(path string) bool {
	return slices.ContainsFunc(g.open, func(w *Watch) bool { return slices.Contains(w.accepted, path) })
}

// leadsNowhere reports whether git refuses to work with the folder to which an entry leads it: there is
// none, or it is not complete yet.
func leadsNowhere(path, target string) bool {
	if target == "" {
		return false
	}
	part := "/HEAD"
	if filepath.Base(path) == "commondir" {
		part = "/objects"
	}
	_, err := os.Lstat(target + part)
	return errors.Is(err, os.ErrNotExist)
}

// restore puts back while the call is alive. mu is locked.
func (g *Guard) restore(a *access, w *Watch, fixes []gitguard.Fix) {
	failed := g.apply(a, w, fixes)
	w.alive.count(g.named(w, fixes), failed)
	g.share(w, fixes)
}

// named returns the fixes that the notes of a watch name: those for a process that outlives calls are named by a call
// of its run that is open. mu is locked.
func (g *Guard) named(w *Watch, fixes []gitguard.Fix) []gitguard.Fix {
	if !w.lives {
		return fixes
	}
	return slices.DeleteFunc(slices.Clone(fixes), func(f gitguard.Fix) bool {
		return slices.ContainsFunc(g.open, func(o *Watch) bool { return !o.lives && o.run == w.run && o.alive != nil && o.before.Holds(f.Path) })
	})
}

// share counts a restoration for all other calls that may have been the one. mu is locked.
func (g *Guard) share(w *Watch, fixes []gitguard.Fix) {
	for _, o := range g.open {
		if o == w || o.alive == nil {
			continue
		}
		mine := slices.DeleteFunc(slices.Clone(fixes), func(f gitguard.Fix) bool { return !o.before.Holds(f.Path) })
		if len(mine) == 0 {
			continue
		}
		if o.isOf(w) { // the call names it already
			mine = nil
		}
		o.alive.count(g.named(o, mine), nil)
		select {
		case o.alive.poke <- struct{}{}:
		default:
		}
	}
}

// isOf reports whether two watches are of one call.
func (w *Watch) isOf(o *Watch) bool {
	return w.first == o || o.first == w || w.first != nil && w.first == o.first
}

// count counts a restoration. Guard.mu is locked.
func (a *alive) count(fixes []gitguard.Fix, failed []string) {
	for _, f := range fixes {
		if !slices.ContainsFunc(a.fixes, func(o gitguard.Fix) bool { return o.Path == f.Path && slices.Equal(o.Names, f.Names) }) && len(a.fixes) < 100 {
			a.fixes = append(a.fixes, f)
		}
	}
	a.failed = append(a.failed, failed...)
	if a.restores++; a.restores >= maxRestores && a.stop != nil {
		a.stop()
		a.stop, a.stopped = nil, true
	}
}

// report passes the note about restorations to the call, if it asked for it.
func (l *lookout) report() {
	l.guard.mu.Lock()
	var note string
	tell := l.alive.tell
	if tell != nil {
		note = l.alive.text(nil)
	}
	l.guard.mu.Unlock()
	if note != "" {
		tell(note)
	}
}

// text returns the note about restorations while the call was alive, and by fixes at its end, and
// forgets it. Guard.mu is locked.
func (a *alive) text(fixes []gitguard.Fix) string {
	note := gitguard.Text(append(a.fixes, fixes...)) + gitguard.FailedText(a.failed)
	if a.stopped {
		note = strings.TrimPrefix(note+" "+gitguard.StoppedText(maxRestores), " ")
		a.stopped = false
	}
	a.fixes, a.failed = nil, nil
	return note
}

// Notify calls a function with each note about restorations while the call is alive, instead of
// returning it at the end.
func (w *Watch) Notify(tell func(note string)) {
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	for _, o := range w.all() {
		o.alive.tell = tell
	}
}

// Of makes the watch one of a call of a run.
func (w *Watch) Of(run string) { w.belong(run, false) }

// Lives makes the watch one of a process of a run that outlives calls. Take returns the note about changes that are put back while the
// process is alive, apart from what a call of the run that is open then names.
func (w *Watch) Lives(run string) { w.belong(run, true) }

func (w *Watch) belong(run string, lives bool) {
	if w == nil {
		return
	}
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	for _, o := range w.all() {
		o.run, o.lives = run, lives
	}
}

// Take returns the note about changes that were put back while the process is alive, once.
func (w *Watch) Take() string {
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	var notes []string
	for _, o := range w.all() {
		if note := o.alive.text(nil); note != "" {
			notes = append(notes, strings.TrimSpace(note))
		}
	}
	return strings.Join(notes, " ")
}

// StopBy calls a function if the call is to be stopped because it does not stop to change what git runs
// programs by. A nil Watch never calls it.
func (w *Watch) StopBy(stop func()) {
	if w == nil || w.alive == nil {
		return
	}
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	for _, o := range w.all() {
		o.alive.stop = stop
	}
}
