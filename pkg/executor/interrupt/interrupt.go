// Package interrupt watches the inboxes of the runs that this process works on for
// interrupts and cancels. A hint makes it read an inbox; an interrupt ends the context
// of the work on the run.
package interrupt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Causes with which the context of the work ends.
var (
	// ErrInterrupted: an interrupt or a cancel is in the inbox.
	ErrInterrupted = fmt.Errorf("interrupted: %w", hookcaller.ErrKill)
	// ErrOutOfTime: the wall-clock budget is used up.
	ErrOutOfTime = fmt.Errorf("wall-clock budget used up: %w", hookcaller.ErrKill)
)

// Stopped reports whether ctx has ended because of an interrupt, a cancel or the time
// budget: not because the step is lost, and not because this process stops.
func Stopped(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrInterrupted) || errors.Is(cause, ErrOutOfTime)
}

// Log is what a Watch needs of a run log.
type Log interface {
	runlog.InboxReader
	runlog.Redelivery
}

// Watch watches the inboxes of the runs that this process works on.
type Watch struct {
	Pokes
	log    Log
	logger *slog.Logger
	now    func() time.Time
}

// New returns a Watch.
func New(log Log, logger *slog.Logger, now func() time.Time) *Watch {
	return &Watch{log: log, logger: logger, now: now}
}

// Inbox is the watched inbox of one run.
type Inbox struct {
	// Check reads the inbox now.
	Check func(context.Context) error
	now   func() time.Time
	// fresh is how long a read counts. An item that is stored later is reported by a
	// poke, or at the latest by a heartbeat.
	fresh time.Duration
	first chan struct{} // closed after the first read

	err error // of the first read

	mu sync.Mutex
	at time.Time // when the newest read began
}

// Inbox reads the inbox of run immediately and at each poke, and calls cancel with
// ErrInterrupted if it has an interrupt or a cancel past the cursor of s. It
// subscribes before the first read, so no item is missed. stop waits until the watch
// has ended.
func (w *Watch) Inbox(ctx context.Context, cancel context.CancelCauseFunc, run runlog.Run, s *harnessv1.Snapshot) (inbox *Inbox, stop func()) {
	pokes, leave := w.Enter(run)
	i := &Inbox{now: w.now, fresh: runlog.Lapse(w.log.AckWait()), first: make(chan struct{})}
	i.Check = func(ctx context.Context) error {
		at := i.now()
		found, err := w.hasStop(ctx, run, s)
		if found {
			cancel(ErrInterrupted)
		}
		if err == nil {
			i.mu.Lock()
			i.at = at
			i.mu.Unlock()
		}
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.err = i.Check(context.WithoutCancel(ctx))
		close(i.first)
		for {
			select {
			case <-ctx.Done():
				return
			case <-pokes:
				if err := i.Check(ctx); err != nil && ctx.Err() == nil {
					w.logger.Warn("read the inbox", "run", run.ID, "error", err)
				}
			}
		}
	}()
	return i, func() {
		cancel(nil)
		<-ended
		leave()
	}
}

// Checked returns once the inbox has been read recently. Its error is that of the
// read.
func (i *Inbox) Checked(ctx context.Context) error {
	<-i.first
	if i.err != nil {
		return i.err
	}
	i.mu.Lock()
	stale := i.now().Sub(i.at) > i.fresh
	i.mu.Unlock()
	if stale {
		return i.Check(ctx)
	}
	return nil
}

// hasStop reports whether an interrupt or a cancel is in the inbox past the cursor. It
// takes nothing out: only repair does.
func (w *Watch) hasStop(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot) (bool, error) {
	cursor := s.GetInboxCursor()
	last, err := w.log.LastInbox(ctx, run)
	if err != nil || last <= cursor {
		return false, err
	}
	for cursor < last {
		items, err := w.log.Inbox(ctx, run, cursor, last)
		if err != nil {
			return false, err
		}
		for _, item := range items {
			switch item.GetInput().(type) {
			case *harnessv1.InboxItem_Interrupt, *harnessv1.InboxItem_Cancel:
				if !runstate.Drained(s, item.GetId()) { // repair ignores an item that it has accepted before
					return true, nil
				}
			}
			cursor = item.GetSequence()
		}
	}
	return false, nil
}
