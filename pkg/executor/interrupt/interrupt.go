// Package interrupt watches the inboxes of the runs that this process works on for
// interrupts, cancels and changes of the mode of work. A hint makes it read an inbox; an
// interrupt ends the context of the work on the run.
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
	// errInterrupted: an interrupt or a cancel is in the inbox.
	errInterrupted = fmt.Errorf("interrupted: %w", hookcaller.ErrKill)
	// ErrOutOfTime: the wall-clock budget is used up.
	ErrOutOfTime = fmt.Errorf("wall-clock budget used up: %w", hookcaller.ErrKill)
)

// Stopped reports whether ctx has ended because of an interrupt, a cancel or the time
// budget: not because the step is lost, and not because this process stops.
func Stopped(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errInterrupted) || errors.Is(cause, ErrOutOfTime)
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

	hints *hints

	mu     sync.Mutex
	begun  uint64 // reads
	newest inboxRead
}

type inboxRead struct {
	number uint64
	at     time.Time // when it began
	pokes  uint64    // that had arrived then
	modes  []string  // that the inbox asks for, in order
}

// Inbox reads the inbox of run immediately and at each poke, and calls cancel with
// errInterrupted if it has an interrupt or a cancel past the cursor of s. It
// subscribes before the first read, so no item is missed. stop waits until the watch
// has ended.
func (w *Watch) Inbox(ctx context.Context, cancel context.CancelCauseFunc, run runlog.Run, s *harnessv1.Snapshot) (inbox *Inbox, stop func()) {
	hints, leave := w.enter(run)
	i := &Inbox{now: w.now, fresh: runlog.Lapse(w.log.AckWait()), first: make(chan struct{}), hints: hints}
	i.Check = func(ctx context.Context) error {
		read := i.startRead()
		found, err := w.read(ctx, run, s)
		if found.stops {
			cancel(errInterrupted)
		}
		if err == nil {
			read.modes = found.modes
			i.record(read)
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
			case <-hints.token:
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

// Checked returns once the inbox has been read recently, and after the last poke that has
// arrived. Its error is that of the read.
func (i *Inbox) Checked(ctx context.Context) error {
	<-i.first
	if i.err != nil {
		return i.err
	}
	i.mu.Lock()
	stale := i.now().Sub(i.newest.at) > i.fresh || i.hints.count.Load() != i.newest.pokes
	i.mu.Unlock()
	if stale {
		return i.Check(ctx)
	}
	return nil
}

// Modes returns the modes of work that the inbox asks for, in order, as it was read last.
func (i *Inbox) Modes() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.newest.modes
}

// startRead returns a read that starts now.
func (i *Inbox) startRead() inboxRead {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begun++
	return inboxRead{number: i.begun, at: i.now(), pokes: i.hints.count.Load()}
}

// record stores the result of a read, unless that of a read that began later is stored.
func (i *Inbox) record(r inboxRead) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.number > i.newest.number {
		i.newest = r
	}
}

// contents are the stops and changes of mode in the inbox of a run.
type contents struct {
	stops bool     // an interrupt or a cancel is in it
	modes []string // that it asks for
}

// read reads the inbox past the cursor, up to an interrupt or a cancel. It takes nothing
// out: only repair does.
func (w *Watch) read(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot) (contents, error) {
	var found contents
	cursor := s.GetInboxCursor()
	last, err := w.log.LastInbox(ctx, run)
	if err != nil || last <= cursor {
		return found, err
	}
	plans := s.GetParent().GetPlans()
	for cursor < last {
		items, err := w.log.Inbox(ctx, run, cursor, last)
		if err != nil {
			return found, err
		}
		for _, item := range items {
			cursor = item.GetSequence()
			if runstate.Drained(s, item.GetId()) {
				continue // repair ignores an item that it has accepted before
			}
			switch input := item.GetInput().(type) {
			case *harnessv1.InboxItem_Interrupt, *harnessv1.InboxItem_Cancel:
				found.stops = true
				return found, nil
			case *harnessv1.InboxItem_ModeChange:
				if item.GetOrder() > 0 {
					plans = item.GetPlans()
				} else if plans {
					continue // its parent is in plan mode
				}
				found.modes = append(found.modes, input.ModeChange.GetMode())
			}
		}
	}
	return found, nil
}
