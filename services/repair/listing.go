package repair

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Listing is what a sweep keeps of all runs until the next one. Its size grows
// with the runs that are not parked or ended, not with those that are.
type Listing struct {
	moving  map[runlog.Run]uint64       // the sequence of the newest step of each
	expired []runlog.Entry              // closing records whose time is over
	overdue map[runlog.Run]runlog.Entry // parks that their timer should have ended
}

// late is how long a park may outlast its timer.
const late = time.Minute

// Add takes the newest step of a run into l. keepDeleted is how long the closing
// record of a deleted run is kept. It changes l.
func (l *Listing) Add(e runlog.Entry, now time.Time, keepDeleted time.Duration) {
	if l.moving == nil {
		l.moving, l.overdue = map[runlog.Run]uint64{}, map[runlog.Run]runlog.Entry{}
	}
	delete(l.moving, e.Run)
	delete(l.overdue, e.Run)
	step := e.Record.GetStep()
	s := step.GetSnapshot()
	switch {
	case !runlog.IsRest(step.GetTo()):
		l.moving[e.Run] = e.Sequence
	case runstate.Expired(s) && now.After(s.GetExpireTime().AsTime().Add(keepDeleted)):
		l.expired = append(l.expired, e)
	case step.GetTo() == runlog.Park && s.GetWakeAt() != nil && now.After(s.GetWakeAt().AsTime().Add(late)):
		l.overdue[e.Run] = e
	}
}

// Work is what two sweeps have found to do.
type Work struct {
	// Recoveries are for the runs that have not moved, by run, oldest step first.
	Recoveries []RunRecovery
	// Overdue are the parks whose timer is lost, oldest first: it is set again.
	Overdue []runlog.Entry
	// Expired are the closing records whose timer is lost: they are erased, unless
	// their name belongs to another run by then.
	Expired []runlog.Entry
}

type RunRecovery struct {
	Run runlog.Run
	Recovery
}

// Since returns the work that a sweep has found, given the listing of the sweep
// before.
func (l Listing) Since(before Listing) Work {
	w := Work{Expired: l.expired}
	for _, run := range slices.SortedFunc(maps.Keys(l.moving), func(a, b runlog.Run) int { return cmp.Compare(l.moving[a], l.moving[b]) }) {
		if before.moving[run] == l.moving[run] {
			w.Recoveries = append(w.Recoveries, RunRecovery{run, Recovery{Step: l.moving[run]}})
		}
	}
	for _, e := range slices.SortedFunc(maps.Values(l.overdue), func(a, b runlog.Entry) int { return cmp.Compare(a.Sequence, b.Sequence) }) {
		if before.overdue[e.Run].Sequence == e.Sequence {
			w.Overdue = append(w.Overdue, e)
		}
	}
	return w
}
