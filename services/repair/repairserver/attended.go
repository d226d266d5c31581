package repairserver

import (
	"context"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Attended limits the runs that are woken to those that somebody has asked for: for
// a process that works on a data directory for the sake of one run and must not
// set others going that happen to rest there, whose model it may not even have.
type Attended struct {
	// Since is when the process took up its work. What was stored before, and timers,
	// wake only Runs and runs that were created since.
	Since time.Time
	// Runs are those that the process is for.
	Runs []runlog.Run
}

// attended knows the runs that somebody has asked for.
type attended struct {
	since time.Time // zero: all runs are
	mu    sync.Mutex
	runs  map[runlog.Run]bool
}

func attend(a *Attended) *attended {
	if a == nil {
		return &attended{}
	}
	known := &attended{since: a.Since, runs: map[runlog.Run]bool{}}
	for _, run := range a.Runs {
		known.runs[run] = true
	}
	return known
}

func (a *attended) has(run runlog.Run) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since.IsZero() || a.runs[run]
}

// unattendedDelay is the wait before a run that nobody asks for is looked at again;
// an input brings itself up.
const unattendedDelay = time.Minute

// asked says whether a resting run may be woken: an input has come that somebody
// sent since, or the run is one of this process.
func (s *Server) asked(ctx context.Context, view runlog.View) (bool, error) {
	run, snapshot := view.Step.Run, view.Step.Record.GetStep().GetSnapshot()
	if s.attended.has(run) {
		return true, nil
	}
	mine := !snapshot.GetCreateTime().AsTime().Before(s.attended.since)
	for after := snapshot.GetInboxCursor(); !mine && after < view.InboxSequence; {
		items, err := s.log.Inbox(ctx, run, after, view.InboxSequence)
		if err != nil {
			return false, err
		}
		for _, item := range items {
			mine = mine || item.GetTimerFired() == nil && !item.GetTime().AsTime().Before(s.attended.since)
			after = item.GetSequence()
		}
	}
	if mine {
		s.attended.mu.Lock()
		s.attended.runs[run] = true
		s.attended.mu.Unlock()
	}
	return mine, nil
}
