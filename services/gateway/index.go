package gateway

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Index lists all runs by their newest steps. It can be rebuilt from the logs at any
// time, and applying a step twice changes nothing. It is not safe for concurrent use.
//
// For each run it stores the sequence of its newest step and the values that lists
// filter and sort by. The rest of a list comes from that step, which is read on request:
// a run costs about 85 bytes here, and about twice as much if its id has more than 28
// bytes (BenchmarkIndex measures it).
//
// A run whose newest step closed a deleted run is not listed. The index remembers recent
// deletions, so that older steps that arrive late, over another path or because the log
// is read again, do not bring the run back.
type Index struct {
	rows rows
	// ahead maps the number of a run to the sequence of its newest message, for runs
	// with a message after their newest step.
	ahead map[uint32]uint64
	// deleted has the sequence at which a run was deleted, deletions their order.
	deleted   map[runlog.Run]uint64
	deletions []runlog.Run
	tally     tally
	usages    usages
}

// remembered is how many deletions an index remembers, which takes at most about half a
// megabyte. An even later step brings back a run that cannot be read; it is removed when
// a reader finds that out, see Gone.
const remembered = 4096

// Row is a run in the index.
type Row struct {
	Place
	Status harnessv1.RunStatus
	// Sequence is the sequence of the newest step: RunOf of that step and Version is the
	// run's summary.
	Sequence uint64
	// Version is the newest known version of the log.
	Version uint64
	// Deleted reports whether the run no longer exists.
	Deleted bool
}

// Change is a change of a run in the index.
type Change struct {
	// Before is the previous row, zero for a new run.
	Before Row
	// After is the current row, or with Deleted the last one.
	After Row
}

// Apply adds a step to the index. Older steps than the index has, and records that
// cannot be read, change nothing: changed is then false.
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
		c.Before = x.rows.export(r)
	}
	run := RunOf(e, e.Header.Version)
	c.After = Row{
		Place:    Place{Created: run.GetCreateTime().AsTime().UnixNano(), Run: e.Run},
		Status:   run.GetStatus(),
		Sequence: e.Sequence,
		Version:  e.Header.Version,
	}
	same := r != nil && c.Before.Place == c.After.Place // otherwise a later run of the same name
	if same && runlog.IsRest(step.GetTo()) && e.Header.Version < r.version {
		return Change{}, false // it has already left this step
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
	r.set(run.GetStatus(), runstate.ParentOf(step) != nil)
	r.rest = 0
	if runlog.IsRest(step.GetTo()) {
		r.rest = x.tally.number(step.GetSnapshot().GetStopReason().GetKind())
	}
	if step.GetTo() == runlog.Park && len(Answerable(step.GetSnapshot())) > 0 {
		r.rest |= awaiting
	}
	x.tally.count(r, 1)
	x.usages.set(r.number, step.GetSnapshot(), run.GetStatus())
	c.After = x.rows.export(r)
	return c, true
}

// Gone removes a run whose step at sequence is no longer stored, unless a newer step is
// known by now.
func (x *Index) Gone(run runlog.Run, sequence uint64) (c Change, changed bool) {
	r := x.rows.row(run)
	if r == nil || r.sequence != sequence {
		return Change{}, false
	}
	return x.drop(r), true
}

// Relist starts to read the newest steps of all runs again. Listed ends it: runs without
// a step since then are removed.
func (x *Index) Relist() {
	for i := range x.rows.order {
		x.rows.oldest(i).confirmed = false
	}
}

// Listed removes the runs that had no step since Relist and returns the changes.
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

// Lost makes the index accept older steps than it has, because the bus has lost its newest
// records.
func (x *Index) Lost() {
	for i := range x.rows.order {
		r := x.rows.oldest(i)
		r.sequence, r.version = 0, 0
	}
	x.ahead, x.deleted, x.deletions = nil, nil, nil
}

// drop removes a run that no longer exists.
func (x *Index) drop(r *row) Change {
	before := x.rows.export(r)
	after := before
	after.Deleted = true
	x.forget(before.Run, r.sequence)
	x.remove(r)
	return Change{Before: before, After: after}
}

func (x *Index) remove(r *row) {
	delete(x.ahead, r.number)
	x.tally.count(r, -1)
	x.usages.remove(r.number)
	x.rows.remove(r)
}

// forget records that a run is deleted as of a sequence.
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

// Lists reports whether the index needs a record when it follows runs: a step to the
// first executor of a cycle, to park or to end.
func Lists(e runlog.Entry) bool {
	to := e.Record.GetStep().GetTo()
	return to == workflow.Repair || runlog.IsRest(to)
}

// Lacks reports whether the index has no step of a run that is as new as e.
func (x *Index) Lacks(e runlog.Entry) bool {
	if r := x.rows.row(e.Run); r != nil {
		return e.Sequence > r.sequence
	}
	return e.Sequence > x.deleted[e.Run]
}

// News reports whether a record has a newer version of a run than the index without
// changing its status: the run is running, and the record is part of its work.
func (x *Index) News(e runlog.Entry) bool {
	r := x.rows.row(e.Run)
	return r != nil && e.Record != nil && !runlog.IsRest(e.Record.GetStep().GetTo()) &&
		r.runStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING &&
		e.Sequence > r.sequence && e.Header.Version > r.version
}

// Advance stores the version of a record that is News.
func (x *Index) Advance(e runlog.Entry) {
	if x.News(e) {
		x.rows.row(e.Run).version = e.Header.Version
	}
}

// Saw records that a message of a run is stored.
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

// Seen returns the sequence of the newest known message of a run, 0 for none.
func (x *Index) Seen(run runlog.Run) uint64 {
	if r := x.rows.row(run); r != nil {
		return max(r.sequence, x.ahead[r.number])
	}
	return 0
}

func (x *Index) lookUp(run runlog.Run) (Row, bool) {
	if r := x.rows.row(run); r != nil {
		return x.rows.export(r), true
	}
	return Row{}, false
}
