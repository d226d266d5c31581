package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var _ runlog.Witness = (*Log)(nil)

// workSubject is followed by EXECUTOR.NAMESPACE.RUN. A question is the sequence of a step
// and the number of a delivery, as decimal text. Only processes that had it answer.
const workSubject = "hm.work."

// livesWait bounds a question: a worker that lives answers immediately.
const livesWait = quietWait

// outages has the time at which the connection was last back; zero if it was never lost.
type outages struct {
	mu   sync.Mutex
	back time.Time
}

func (o *outages) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.back = time.Now()
}

// within reports whether the connection was back within d.
func (o *outages) within(d time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.back.IsZero() && time.Since(o.back) < d
}

// Testify answers the questions of other workers.
func (l *Log) Testify(executor string, had func(run runlog.Run, sequence, delivery uint64) bool) (stop func(), err error) {
	prefix := workSubject + executor + "."
	sub, err := l.nc.Subscribe(prefix+"*.*", func(m *nats.Msg) {
		namespace, id, _ := strings.Cut(strings.TrimPrefix(m.Subject, prefix), ".")
		var sequence, delivery uint64
		if !toInbox(m) {
			return
		}
		if _, err := fmt.Sscan(string(m.Data), &sequence, &delivery); err != nil || !had(runlog.Run{Namespace: namespace, ID: id}, sequence, delivery) {
			return
		}
		if err := m.Respond(nil); err != nil {
			l.logger.Debug("answer for a delivery", "executor", executor, "error", err)
		}
	})
	if err != nil {
		return nil, unavailable("listen to questions about "+executor, err)
	}
	_ = l.nc.FlushTimeout(l.timeout) // the server knows the subscription, or gets it with the connection
	unhook := l.hookReconnect(l.outages.over)
	return func() {
		unhook()
		_ = sub.Unsubscribe()
	}, nil
}

// Lives asks all workers of an executor about a delivery.
func (l *Log) Lives(ctx context.Context, executor string, run runlog.Run, sequence, delivery uint64) (bool, error) {
	op := "ask about the worker of " + run.String()
	if err := l.Connected(); err != nil {
		return false, unavailable(op, err)
	}
	// The server delivers again what workers could not extend meanwhile. They are back
	// about when this one is.
	if l.outages.within(3 * l.AckWait()) {
		return false, fmt.Errorf("%s: %w: the connection was lost within the last %s", op, runlog.ErrUnavailable, 3*l.AckWait())
	}
	ctx, cancel := context.WithTimeout(ctx, livesWait)
	defer cancel()
	_, err := l.nc.RequestWithContext(ctx, workSubject+executor+"."+run.Namespace+"."+run.ID, fmt.Appendf(nil, "%d %d", sequence, delivery))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return false, nil
	}
	return false, unavailable(op, err)
}
