package gateway

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Index is the list of all runs as their newest steps show them. It can be made
// from the logs at any time; folding a step twice changes nothing. It is not
// safe for concurrent use.
//
// Of a run it knows where its newest step is stored and what lists are filtered
// and ordered by. All else that a list shows stands in that step, which is read
// when somebody asks: a run that nobody asks for costs about 85 bytes here, one
// whose id has more than 28 about twice as much (BenchmarkIndex has the figures).
//
// A run whose newest step is the end of a deleted run is not in it. The index
// remembers the last deletions, so that older steps that come late, on another
// way or because the log is followed anew, do not bring such a run back.
type Index struct {
	rows rows
	// ahead has the sequence of the newest message of runs that have one behind
	// their newest step, by number.
	ahead map[uint32]uint64
	// deleted has the sequence of the deletion of runs, deletions their order.
	deleted   map[runlog.Run]uint64
	deletions []runlog.Run
	tally     tally
}

// remembered is how many deletions an index remembers, so at most about half a
// megabyte. A step that comes later than that brings a run back that cannot be
// read; it leaves when that is noticed, see Gone.
const remembered = 4096

// Row is how a run stands.
type Row struct {
	Place
	Status harnessv1.RunStatus
	// Sequence is that of the newest step: the run as it is shown is RunOf that
	// step and Version.
	Sequence uint64
	// Version is the newest that is known of the log.
	Version uint64
	// Deleted says that the run is no longer there.
	Deleted bool
}

// Change is what happened to a run in the index.
type Change struct {
	// Before is how the run stood, the zero Row for a new one.
	Before Row
	// After is how it stands, or with Deleted how it stood last.
	After Row
}

// Apply folds a step. Steps that are older than what the index has, and records
// that cannot be read, change nothing: changed is then false.
func (x *Index) Apply(e runlog.Entry) (c Change, changed bool) {
	step := e.Record.GetStep()
	if step == nil || e.Sequence <= x.deleted[e.Run] {
		return Change{}, false
	}
	r := x.rows.row(e.Run)
	if r != nil {
		r.confirmed = true
		if e.Sequence <= r.sequence {
			return Change{}, false
		}
		c.Before = x.rows.stands(r)
	}
	run := RunOf(e, e.Header.Version)
	c.After = Row{
		Place:    Place{Created: run.GetCreateTime().AsTime().UnixNano(), Run: e.Run},
		Status:   run.GetStatus(),
		Sequence: e.Sequence,
		Version:  e.Header.Version,
	}
	same := r != nil && c.Before.Place == c.After.Place // else another incarnation of the name
	if same && runlog.IsRest(step.GetTo()) && e.Header.Version < r.version {
		return Change{}, false // it is known to have left this rest
	}
	if step.GetTo() == runlog.End && runstate.Expired(step.GetSnapshot()) {
		x.forget(e.Run, e.Sequence)
		if r == nil {
			return Change{}, false
		}
		x.remove(r)
		c.After.Deleted = true
		return c, true
	}
	if same {
		x.tally.count(r, -1)
	} else {
		if r != nil {
			x.remove(r)
		}
		r = x.rows.add(c.After.Place)
		r.confirmed = true
	}
	if r.sequence = e.Sequence; r.sequence >= x.ahead[r.number] {
		delete(x.ahead, r.number)
	}
	r.version = max(r.version, e.Header.Version)
	r.status = uint8(run.GetStatus()) //nolint:gosec // a handful of values
	r.rest = 0
	if runlog.IsRest(step.GetTo()) {
		r.rest = x.tally.number(step.GetSnapshot().GetStopReason().GetKind())
	}
	if step.GetTo() == runlog.Park && len(Awaited(step.GetSnapshot())) > 0 {
		r.rest |= awaiting
	}
	x.tally.count(r, 1)
	c.After = x.rows.stands(r)
	return c, true
}

// Gone takes a run out whose step at sequence turned out not to be stored any
// more, unless another one is known by now.
func (x *Index) Gone(run runlog.Run, sequence uint64) (c Change, changed bool) {
	r := x.rows.row(run)
	if r == nil || r.sequence != sequence {
		return Change{}, false
	}
	return x.drop(r), true
}

// Relist begins to take in the newest steps of all runs anew; Listed ends it:
// runs that none of them was of are not there any more.
func (x *Index) Relist() {
	for i := range x.rows.order {
		x.rows.oldest(i).confirmed = false
	}
}

// Listed takes out the runs that were not confirmed since Relist, and returns
// what changed.
func (x *Index) Listed() (changes []Change) {
	var gone []*row
	for i := range x.rows.order {
		if r := x.rows.oldest(i); !r.confirmed {
			gone = append(gone, r)
		}
	}
	for _, r := range gone {
		changes = append(changes, x.drop(r))
	}
	return changes
}

// drop takes a run out that is found to be gone.
func (x *Index) drop(r *row) Change {
	before := x.rows.stands(r)
	after := before
	after.Deleted = true
	x.forget(before.Run, r.sequence)
	x.remove(r)
	return Change{Before: before, After: after}
}

func (x *Index) remove(r *row) {
	delete(x.ahead, r.number)
	x.tally.count(r, -1)
	x.rows.remove(r)
}

// forget notes that a run is deleted as of a sequence.
func (x *Index) forget(run runlog.Run, sequence uint64) {
	if x.deleted == nil {
		x.deleted = map[runlog.Run]uint64{}
	}
	if _, known := x.deleted[run]; !known {
		if len(x.deletions) == remembered {
			delete(x.deleted, x.deletions[0])
			x.deletions = append(x.deletions[:0], x.deletions[1:]...)
		}
		run = runlog.Run{Namespace: strings.Clone(run.Namespace), ID: strings.Clone(run.ID)}
		x.deletions = append(x.deletions, run)
	}
	x.deleted[run] = sequence
}

// Lists says whether a record is one of those that the index is made of when the
// runs are followed: a step to the first executor of a cycle or to a place of rest.
func Lists(e runlog.Entry) bool {
	to := e.Record.GetStep().GetTo()
	return to == workflow.Repair || runlog.IsRest(to)
}

// Lacks says whether the index has no step of a run that is as new as e.
func (x *Index) Lacks(e runlog.Entry) bool {
	if r := x.rows.row(e.Run); r != nil {
		return e.Sequence > r.sequence
	}
	return e.Sequence > x.deleted[e.Run]
}

// News says whether a record shows a run at a newer version than the index does,
// without changing how it stands: the run works, and the record is another one
// of its work.
func (x *Index) News(e runlog.Entry) bool {
	r := x.rows.row(e.Run)
	return r != nil && e.Record != nil && !runlog.IsRest(e.Record.GetStep().GetTo()) &&
		r.status == uint8(harnessv1.RunStatus_RUN_STATUS_RUNNING) &&
		e.Sequence > r.sequence && e.Header.Version > r.version
}

// Advance notes the version of a record that is News.
func (x *Index) Advance(e runlog.Entry) {
	if x.News(e) {
		x.rows.row(e.Run).version = e.Header.Version
	}
}

// Saw notes that a message of a run is stored.
func (x *Index) Saw(run runlog.Run, sequence uint64) {
	r := x.rows.row(run)
	if r == nil || sequence <= max(r.sequence, x.ahead[r.number]) {
		return
	}
	if x.ahead == nil {
		x.ahead = map[uint32]uint64{}
	}
	x.ahead[r.number] = sequence
}

// Seen is the sequence of the newest message that is known of a run, 0 for none.
func (x *Index) Seen(run runlog.Run) uint64 {
	if r := x.rows.row(run); r != nil {
		return max(r.sequence, x.ahead[r.number])
	}
	return 0
}

// lookUp is how a run stands.
func (x *Index) lookUp(run runlog.Run) (Row, bool) {
	if r := x.rows.row(run); r != nil {
		return x.rows.stands(r), true
	}
	return Row{}, false
}
