package memory

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Newest is the sequence of the newest record or inbox item.
func (l *Log) Newest(ctx context.Context, name runlog.Run) (uint64, error) {
	if err := l.enter(ctx, "newest of "+name.String()); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	return max(l.runs[name].newest(), l.runs[name].lastInbox()), nil
}
