package turnserver

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// checkInbox reads the inbox. An interrupt ends the context of the turn.
func (t *execution) checkInbox(ctx context.Context, a turn.CheckInbox) turn.Event {
	if t.inbox == nil {
		return turn.InboxChecked{}
	}
	if err := read(ctx, t.inbox, a.Newest); err != nil {
		return turn.Failed{Err: err}
	}
	mode := turn.ModeAfter(t.state.Snapshot, t.state.Definition, t.inbox.Modes())
	if mode == "" {
		return turn.InboxChecked{}
	}
	s := runstate.InMode(t.state.Snapshot, mode)
	h, err := t.server.toolHost(ctx, false)
	if err != nil {
		return turn.Failed{Err: err}
	}
	offer, err := t.server.offer(ctx, t.run, s, t.state.Definition, h)
	if err != nil {
		return turn.Failed{Err: err}
	}
	return turn.InboxChecked{Offer: offer}
}

// read reads an inbox; unless newest is set only if it has not been read recently.
func read(ctx context.Context, inbox *interrupt.Inbox, newest bool) error {
	if newest {
		return inbox.Check(ctx)
	}
	return inbox.Checked(ctx)
}
