package gateway

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// RunsWatch decides what one watcher of runs receives: first the runs that match its
// request, newest first, then each run that changes. It keeps the names of the runs that
// are queued, each once, and no states: a run is sent as the index has it when its turn
// comes. So a slow watcher receives the newest state, versions never decrease, and
// memory is bounded by the number of runs.
//
// A change of a run that the initial list has not reached is left to the list. A run
// that was sent and no longer has a requested status is sent one last time; if the
// initial list was skipped, its runs count as sent.
//
// A deleted run no longer matches either: a watcher that received it gets it one last
// time, with the reason "deleted", and nothing else of it is read. A later run of the
// same name is a new run, whose versions start at 1; a slow watcher may receive only
// that one.
//
// It is not safe for concurrent use.
type RunsWatch struct {
	within   Namespaces
	statuses []harnessv1.RunStatus

	// listing: the initial list is not complete. from is the place after which it
	// continues; everything from there on was listed.
	listing bool
	from    Place
	begun   bool
	// caughtUp reports whether the watcher received that it has caught up.
	caughtUp bool

	// queue has the queued runs, in the order in which they first changed.
	queue   []runlog.Run
	waiting map[runlog.Run]queuedRun
}

// queuedRun is a run in the queue.
type queuedRun struct {
	// known reports whether the watcher knows the run with a requested status.
	known bool
	// deleted is the last row of a run that is no longer in the index.
	deleted Row
}

// NewRunsWatch validates a request and starts its watch, limited to the namespaces that
// the caller may see; nil means all.
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
		waiting: map[runlog.Run]queuedRun{},
	}, nil
}

// Change applies a change of the index and reports whether there is something to send
// because of it.
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
	return true // the batch sends the newest state
}

// Batch is one batch for a watcher.
type Batch struct {
	// Rows are the runs to send. A run whose step is no longer stored is skipped: its
	// deletion arrives as a change.
	Rows []Row
	// CaughtUp: with Rows, everything that was stored at the start is sent.
	CaughtUp bool
	// More: there is more to send now.
	More bool
}

// Next returns what to send next, from at most limit runs of the index.
func (w *RunsWatch) Next(x *Index, limit int) (t Batch) {
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

// listed reports whether the initial list has passed a place.
func (w *RunsWatch) listed(p Place) bool {
	return !w.listing || w.begun && p.compare(w.from) >= 0
}

func (w *RunsWatch) wants(r Row) bool {
	return w.within.has(r.Run.Namespace) && w.asked(r)
}

func (w *RunsWatch) asked(r Row) bool {
	return len(w.statuses) == 0 || slices.Contains(w.statuses, r.Status)
}
