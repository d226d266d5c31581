package jetstream

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Newest reads from the stream's leader. A replica may lag, and nothing would show it.
func (l *Log) Newest(ctx context.Context, run runlog.Run) (uint64, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	p := l.partition(run)
	sequence, err := l.newest(ctx, runsStream(p), []string{runlog.LogFilter(p, run), runlog.InboxSubject(p, run)})
	if err != nil {
		return 0, unavailable("newest of "+run.String(), err)
	}
	return sequence, nil
}
