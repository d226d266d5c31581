package turnserver

import (
	"context"
	"errors"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
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

// stopAsked says whether an interrupt or a cancel lies in the inbox beyond the
// cursor. Only repair takes items in; this is a look.
func (w *Server) stopAsked(ctx context.Context, run runlog.Run, cursor uint64) (bool, error) {
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
				return true, nil
			}
			cursor = item.GetSequence()
		}
	}
	return false, nil
}
