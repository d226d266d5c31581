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
// A run that is deleted no longer has what was asked for either: a watcher that
// was told of it is told of it once more, with the reason "deleted", and nothing
// else is read of it. A later run of the same name is a new one, whose versions
// begin anew; a watcher that is slow may be told of that one only.
//
// It is not safe for concurrent use.
type RunsWatch struct {
	within   Namespaces
	statuses []harnessv1.RunStatus

	// listing says that the list at the start is not through; from is the place
	// that it goes on behind, and everything from there on was listed.
	listing bool
	from    Place
	begun   bool
	// caughtUp says that the watcher was told so.
	caughtUp bool

	// queue has the runs that wait, in the order in which they first changed.
	queue   []runlog.Run
	waiting map[runlog.Run]waiting
}

// waiting is a run that a watcher is to be told of.
type waiting struct {
	// known says that the watcher knows it with a status that was asked for.
	known bool
	// deleted is how it stood last, where it is not in the index any more.
	deleted Row
}

// NewRunsWatch checks a request and begins what it asks for, as far as its caller
// may see it; nil means all.
func NewRunsWatch(r *harnessv1.WatchRunsRequest, allowed []string) (*RunsWatch, error) {
	namespace, err := Scope(r.GetNamespace())
	if err != nil {
		return nil, err
	}
	if err := checkStatuses(r.GetStatuses()); err != nil {
		return nil, err
	}
	return &RunsWatch{
		within: Within(namespace, allowed), statuses: r.GetStatuses(), listing: !r.GetChangesOnly(),
		waiting: map[runlog.Run]waiting{},
	}, nil
}

// Change takes in a change of the index and says whether there is something to
// tell because of it.
func (w *RunsWatch) Change(c Change) bool {
	run := c.After.Run
	if !w.within.has(run.Namespace) {
		return false
	}
	state, waits := w.waiting[run]
	if !waits {
		state.known = c.Before.Sequence != 0 && w.listed(c.Before.Place) && w.asked(c.Before)
		if !state.known && (c.After.Deleted || !w.asked(c.After) || !w.listed(c.After.Place)) {
			return false
		}
		w.queue = append(w.queue, run)
	}
	if c.After.Deleted {
		state.deleted = c.After
	}
	w.waiting[run] = state
	return true // told as it stands then
}

// Told is something to tell a watcher.
type Told struct {
	// Rows are the runs that the watcher is to be told of. A run whose step is not
	// stored any more is passed over: that it was deleted comes as a change.
	Rows []Row
	// CaughtUp says that all that was stored at the start is told with Rows.
	CaughtUp bool
	// More says that there is more to tell now.
	More bool
}

// Next is what is to be told next, from at most limit runs of the index.
func (w *RunsWatch) Next(x *Index, limit int) (t Told) {
	if w.listing {
		w.begun = true
		t.Rows, w.from, w.listing = x.page(w.from, limit, w.wants)
	} else {
		n := min(limit, len(w.queue))
		for _, run := range w.queue[:n] {
			state := w.waiting[run]
			row, there := x.lookUp(run)
			switch {
			case there && (state.known || w.asked(row)):
				t.Rows = append(t.Rows, row)
			case !there && state.known:
				t.Rows = append(t.Rows, state.deleted)
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

func (w *RunsWatch) wants(r Row) bool {
	return w.within.has(r.Run.Namespace) && w.asked(r)
}

func (w *RunsWatch) asked(r Row) bool {
	return len(w.statuses) == 0 || slices.Contains(w.statuses, r.Status)
}
