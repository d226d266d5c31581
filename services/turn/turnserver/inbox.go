package turnserver

import (
	"context"

	"github.com/harnessmesh/harnessmesh/services/turn"
)

// checkInbox returns once the inbox has been read for interrupts recently. An
// interrupt ends the context of the turn.
func (t *execution) checkInbox(ctx context.Context) turn.Event {
	if err := t.inbox(ctx); err != nil {
		return turn.Failed{Err: err}
	}
	return turn.InboxChecked{}
}
