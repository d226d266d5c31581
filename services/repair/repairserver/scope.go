package repairserver

import (
	"context"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Scope limits the runs that a process wakes: one that works on a data directory
// for a single run must not wake other parked runs there, whose model it may not
// even have.
type Scope struct {
	// Since is when the process started. Earlier inputs, and timers, wake only Runs
	// and runs that were created since.
	Since time.Time
	// Runs are woken by every input.
	Runs []runlog.Run
}

// scope knows the runs that this process wakes.
type scope struct {
	since time.Time // zero: all runs
	mu    sync.Mutex
	runs  map[runlog.Run]bool
}

func newScope(limits *Scope) *scope {
	if limits == nil {
		return &scope{}
	}
	c := &scope{since: limits.Since, runs: map[runlog.Run]bool{}}
	for _, run := range limits.Runs {
		c.runs[run] = true
	}
	return c
}

func (c *scope) has(run runlog.Run) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since.IsZero() || c.runs[run]
}

// admits reports whether the run of a view may be woken: it is in scope, was
// created since the process started, or has an input of a client since then. It
// is in scope from then on.
func (c *scope) admits(ctx context.Context, inbox runlog.InboxReader, view runlog.View) (bool, error) {
	run, snapshot := view.Step.Run, view.Step.Record.GetStep().GetSnapshot()
	root := runstate.ParentOf(view.Step.Record.GetStep()).GetRootRunId()
	if c.has(run) || root != "" && c.has(runlog.Run{Namespace: run.Namespace, ID: root}) { // a tree continues as one
		return true, nil
	}
	admitted := !snapshot.GetCreateTime().AsTime().Before(c.since)
	for after := snapshot.GetInboxCursor(); !admitted && after < view.InboxSequence; {
		items, err := inbox.Inbox(ctx, run, after, view.InboxSequence)
		if err != nil {
			return false, err
		}
		for _, item := range items {
			admitted = admitted || item.GetTimerFired() == nil && !item.GetTime().AsTime().Before(c.since)
			after = item.GetSequence()
		}
	}
	if admitted {
		c.mu.Lock()
		c.runs[run] = true
		c.mu.Unlock()
	}
	return admitted, nil
}
