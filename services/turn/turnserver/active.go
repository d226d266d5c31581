package turnserver

import (
	"context"
	"errors"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// errInterrupted ends a turn because an interrupt or a cancel is in the inbox.
var errInterrupted = errors.New("interrupted")

// errOutOfTime ends a turn because the wall-clock budget is used up.
var errOutOfTime = errors.New("wall-clock budget used up")

// active holds the turns that are under way here, for pokes.
type active struct {
	mu    sync.Mutex
	turns map[runlog.Run]chan struct{}
}

func newActive() *active { return &active{turns: map[runlog.Run]chan struct{}{}} }

// poke wakes whoever watches the inbox of run. It proves nothing by itself.
func (a *active) poke(run runlog.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ch := a.turns[run]; ch != nil {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (a *active) enter(run runlog.Run) (pokes <-chan struct{}, leave func()) {
	ch := make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns[run] = ch
	return ch, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.turns[run] == ch {
			delete(a.turns, run)
		}
	}
}

// lookout watches the inbox of a run for what would stop its turn.
type lookout struct {
	look func(context.Context) error
	now  func() time.Time
	// fresh is how long a look counts. Within it a poke, or at the latest a
	// heartbeat, brings what came in behind the look.
	fresh time.Duration
	first chan struct{} // closed when the first look is over

	err error // of the first look

	mu sync.Mutex
	at time.Time // when the newest look began
}

// watchInbox looks at the inbox at once and at each poke, and ends the turn
// through cancel when an interrupt or a cancel is there. It listens before it
// looks, so that nothing falls between. stop waits for it to end.
func (w *Server) watchInbox(ctx context.Context, cancel context.CancelCauseFunc, run runlog.Run, s *harnessv1.Snapshot) (*lookout, func()) {
	pokes, leave := w.active.enter(run)
	l := &lookout{now: w.cfg.Now, fresh: runlog.Lapse(w.cfg.Log.AckWait()), first: make(chan struct{})}
	l.look = func(ctx context.Context) error {
		at := l.now()
		asked, err := w.stopAsked(ctx, run, s)
		if asked {
			cancel(errInterrupted)
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
		l.err = l.look(context.WithoutCancel(ctx))
		close(l.first)
		for {
			select {
			case <-ctx.Done():
				return
			case <-pokes:
				if err := l.look(ctx); err != nil && ctx.Err() == nil {
					w.cfg.Logger.Warn("inbox", "run", run.ID, "error", err)
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

// looked returns when there is a fresh look at the inbox.
func (l *lookout) looked(ctx context.Context) error {
	<-l.first
	if l.err != nil {
		return l.err
	}
	l.mu.Lock()
	stale := l.now().Sub(l.at) > l.fresh
	l.mu.Unlock()
	if stale {
		return l.look(ctx)
	}
	return nil
}

// stopAsked says whether an interrupt or a cancel lies in the inbox beyond the
// cursor. Only repair takes items in; this is a look.
func (w *Server) stopAsked(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot) (bool, error) {
	cursor := s.GetInboxCursor()
	last, err := w.cfg.Log.LastInbox(ctx, run)
	if err != nil || last <= cursor {
		return false, err
	}
	for cursor < last {
		items, err := w.cfg.Log.Inbox(ctx, run, cursor, last)
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
