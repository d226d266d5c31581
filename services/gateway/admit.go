package gateway

import (
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// wakeTime bounds how long an input counts as a run at work that has not followed it.
const wakeTime = time.Minute

// Admissions are the admitted requests that the index does not show yet: starts until they are
// stored, and inputs that wake a run until it has a newer step. So requests at the same moment do not
// exceed a quota together. It is not safe for concurrent use.
type Admissions struct {
	starting map[string]int
	woken    map[string]map[runlog.Run]wake
}

// wake is an input of a run that was not at work.
type wake struct {
	sequence uint64 // of the newest step then
	at       time.Time
}

// Start admits a start of a run by the holder of a name that may have most runs at work; otherwise it
// returns how many it has. Each admitted start has to be passed to Stored.
func (a *Admissions) Start(x *Index, name string, most int, now time.Time) (atWork int, admitted bool) {
	if atWork = a.atWork(x, name, now); atWork >= most {
		return atWork, false
	}
	if a.starting == nil {
		a.starting = map[string]int{}
	}
	a.starting[name]++
	return atWork, true
}

// Stored counts a start no longer: the index has its run, or there is none.
func (a *Admissions) Stored(name string) {
	if a.starting[name]--; a.starting[name] == 0 {
		delete(a.starting, name)
	}
}

// Wake admits an input of a run, if the run is at work, a local person has started it, or the holder of the token that
// has started it has less than most runs at work; otherwise it returns how many that one has, and nil. refused counts
// an admitted input no longer, because the run has refused it.
func (a *Admissions) Wake(x *Index, run runlog.Run, most int, now time.Time) (atWork int, refused func()) {
	row, name := x.starter(run)
	if name == "" || row.Status == harnessv1.RunStatus_RUN_STATUS_RUNNING {
		return 0, func() {}
	}
	atWork = a.atWork(x, name, now)
	if _, woken := a.woken[name][run]; woken {
		return atWork, func() {}
	}
	if atWork >= most {
		return atWork, nil
	}
	if a.woken == nil {
		a.woken = map[string]map[runlog.Run]wake{}
	}
	if a.woken[name] == nil {
		a.woken[name] = map[runlog.Run]wake{}
	}
	a.woken[name][run] = wake{row.Sequence, now}
	return atWork, func() { a.forget(name, run) }
}

// atWork returns the runs at work of the holder of a name, with those that are admitted.
func (a *Admissions) atWork(x *Index, name string, now time.Time) int {
	for run, w := range a.woken[name] {
		row, by := x.starter(run)
		if by != name || row.Sequence != w.sequence || now.Sub(w.at) >= wakeTime {
			a.forget(name, run)
		}
	}
	return x.Usage(name).AtWork + a.starting[name] + len(a.woken[name])
}

func (a *Admissions) forget(name string, run runlog.Run) {
	if delete(a.woken[name], run); len(a.woken[name]) == 0 {
		delete(a.woken, name)
	}
}
