// Package interrupt watches the inboxes of runs that are being worked on for what
// would stop the work: an interrupt or a cancel. A poke makes it look; what it finds
// ends the context of the work.
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

// Why work ends.
var (
	// ErrInterrupted: an interrupt or a cancel is in the inbox.
	ErrInterrupted = fmt.Errorf("interrupted: %w", hookcaller.ErrKill)
	// ErrOutOfTime: the wall-clock budget is used up.
	ErrOutOfTime = fmt.Errorf("wall-clock budget used up: %w", hookcaller.ErrKill)
)

// Stopped says that the work of ctx was ended on purpose: not by losing the step, and
// not because this process stops.
func Stopped(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrInterrupted) || errors.Is(cause, ErrOutOfTime)
}

// Log is what a Watch needs of a run log.
type Log interface {
	runlog.InboxReader
	runlog.Redelivery
}

// Watch watches the inboxes of the runs that are being worked on here.
type Watch struct {
	log    Log
	logger *slog.Logger
	now    func() time.Time

	mu    sync.Mutex
	works map[runlog.Run]chan struct{} // what is under way
}

// New makes a watch.
func New(log Log, logger *slog.Logger, now func() time.Time) *Watch {
	return &Watch{log: log, logger: logger, now: now, works: map[runlog.Run]chan struct{}{}}
}

// Poke wakes whoever watches the inbox of run. It proves nothing by itself.
func (a *Watch) Poke(run runlog.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ch := a.works[run]; ch != nil {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (a *Watch) enter(run runlog.Run) (pokes <-chan struct{}, leave func()) {
	ch := make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.works[run] = ch
	return ch, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.works[run] == ch {
			delete(a.works, run)
		}
	}
}

// Lookout watches the inbox of a run for what would stop the work on it.
type Lookout struct {
	// Check reads the inbox now.
	Check func(context.Context) error
	now   func() time.Time
	// fresh is how long a look counts. Within it a poke, or at the latest a
	// heartbeat, brings what came in behind the look.
	fresh time.Duration
	first chan struct{} // closed when the first look is over

	err error // of the first look

	mu sync.Mutex
	at time.Time // when the newest look began
}

// Inbox looks at the inbox at once and at each poke, and ends the work
// through cancel when an interrupt or a cancel is there. It listens before it
// looks, so that nothing falls between. stop waits for it to end.
func (a *Watch) Inbox(ctx context.Context, cancel context.CancelCauseFunc, run runlog.Run, s *harnessv1.Snapshot) (*Lookout, func()) {
	pokes, leave := a.enter(run)
	l := &Lookout{now: a.now, fresh: runlog.Lapse(a.log.AckWait()), first: make(chan struct{})}
	l.Check = func(ctx context.Context) error {
		at := l.now()
		asked, err := a.stopAsked(ctx, run, s)
		if asked {
			cancel(ErrInterrupted)
		}
		if err == nil {
			l.mu.Lock()
			l.at = at
			l.mu.Unlock()
		}
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.err = l.Check(context.WithoutCancel(ctx))
		close(l.first)
		for {
			select {
			case <-ctx.Done():
				return
			case <-pokes:
				if err := l.Check(ctx); err != nil && ctx.Err() == nil {
					a.logger.Warn("inbox", "run", run.ID, "error", err)
				}
			}
		}
	}()
	return l, func() {
		cancel(nil)
		<-ended
		leave()
	}
}

// Checked returns when there is a fresh look at the inbox.
func (l *Lookout) Checked(ctx context.Context) error {
	<-l.first
	if l.err != nil {
		return l.err
	}
	l.mu.Lock()
	stale := l.now().Sub(l.at) > l.fresh
	l.mu.Unlock()
	if stale {
		return l.Check(ctx)
	}
	return nil
}

// stopAsked says whether an interrupt or a cancel lies in the inbox beyond the
// cursor. Only repair takes items in; this is a look.
func (a *Watch) stopAsked(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot) (bool, error) {
	cursor := s.GetInboxCursor()
	last, err := a.log.LastInbox(ctx, run)
	if err != nil || last <= cursor {
		return false, err
	}
	for cursor < last {
		items, err := a.log.Inbox(ctx, run, cursor, last)
		if err != nil {
			return false, err
		}
		for _, item := range items {
			switch item.GetInput().(type) {
			case *harnessv1.InboxItem_Interrupt, *harnessv1.InboxItem_Cancel:
				if !runstate.Drained(s, item.GetId()) { // repair passes over what it has had
					return true, nil
				}
			}
			cursor = item.GetSequence()
		}
	}
	return false, nil
}
