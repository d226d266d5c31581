package gateway

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// RunsWatch decides what one watcher of runs is told: first how all runs stand
// that it asked for, newest first, then each that changes. It holds the names of
// the runs that wait to be told, each once, and no states: a run is told as the
// index has it when its turn comes. So a slow watcher is told the newest state,
// what it is told never goes back, and its memory is bounded by the number of
// runs.
//
// A change of a run that the list at the start has not come to is left to the
// list. A run that was told of and no longer has a status that was asked for is
// told of once more; where the list at the start was left out, what stood in it
// counts as told.
//
// It is not safe for concurrent use.
type RunsWatch struct {
	namespace string
	statuses  []harnessv1.RunStatus

	// listing says that the list at the start is not through; from is the place
	// that it goes on behind, and everything from there on was listed.
	listing bool
	from    Place
	begun   bool
	// caughtUp says that the watcher was told so.
	caughtUp bool

	// queue has the runs that wait, in the order in which they first changed.
	queue []runlog.Run
	// waiting says of each of them whether the watcher knows it with a status
	// that was asked for.
	waiting map[runlog.Run]bool
}

// NewRunsWatch checks a request and begins what it asks for.
func NewRunsWatch(r *harnessv1.WatchRunsRequest) (*RunsWatch, error) {
	namespace, err := Scope(r.GetNamespace())
	if err != nil {
		return nil, err
	}
	if err := checkStatuses(r.GetStatuses()); err != nil {
		return nil, err
	}
	return &RunsWatch{
		namespace: namespace, statuses: r.GetStatuses(), listing: !r.GetChangesOnly(),
		waiting: map[runlog.Run]bool{},
	}, nil
}

// Change takes in a change of the index and says whether there is something to
// tell because of it.
func (w *RunsWatch) Change(c Change) bool {
	if w.namespace != "" && c.Run.Namespace != w.namespace {
		return false
	}
	if _, waits := w.waiting[c.Run]; waits {
		return true // told as it stands then
	}
	known := c.Before != nil && w.listed(c.Was) && w.asked(c.Before)
	if !known && (!w.asked(c.After) || !w.listed(c.Is)) {
		return false
	}
	w.waiting[c.Run] = known
	w.queue = append(w.queue, c.Run)
	return true
}

// Told is something to tell a watcher.
type Told struct {
	// Runs that the watcher is to be told of.
	Runs []*harnessv1.Run
	// CaughtUp says that all that was stored at the start is told with Runs.
	CaughtUp bool
	// More says that there is more to tell now.
	More bool
}

// Next is what is to be told next, from at most limit runs of the index.
func (w *RunsWatch) Next(x *Index, limit int) (t Told) {
	if w.listing {
		w.begun = true
		t.Runs, w.from, w.listing = x.page(w.from, limit, func(r *row) bool { return w.wants(r) })
	} else {
		n := min(limit, len(w.queue))
		for _, run := range w.queue[:n] {
			if r := x.rows[run]; r != nil && (w.waiting[run] || w.asked(r.run)) {
				t.Runs = append(t.Runs, r.stands())
			}
			delete(w.waiting, run)
		}
		if w.queue = w.queue[n:]; len(w.queue) == 0 {
			w.queue = nil
		}
	}
	if !w.listing && !w.caughtUp {
		w.caughtUp, t.CaughtUp = true, true
	}
	t.More = w.listing || len(w.queue) > 0
	return t
}

// listed says that the list at the start does not come to a place any more.
func (w *RunsWatch) listed(p Place) bool {
	return !w.listing || w.begun && p.compare(w.from) >= 0
}

func (w *RunsWatch) wants(r *row) bool {
	return (w.namespace == "" || r.place.Run.Namespace == w.namespace) && w.asked(r.run)
}

func (w *RunsWatch) asked(r *harnessv1.Run) bool {
	return len(w.statuses) == 0 || slices.Contains(w.statuses, r.GetStatus())
}

// page looks at no more than limit runs behind from, newest first, and returns
// those that are wanted; more is false after the last.
func (x *Index) page(from Place, limit int, wanted func(*row) bool) (runs []*harnessv1.Run, next Place, more bool) {
	end := len(x.order)
	if from != (Place{}) {
		end, _ = x.find(from)
	}
	last := max(0, end-limit)
	for i := end - 1; i >= last; i-- {
		if wanted(x.order[i]) {
			runs = append(runs, x.order[i].stands())
		}
	}
	if last == 0 {
		return runs, Place{}, false
	}
	return runs, x.order[last].place, true
}
