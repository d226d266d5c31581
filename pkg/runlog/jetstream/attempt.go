package jetstream

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// attempts are requests that the user of a connection may not be permitted to make, by subject. A
// refusal of one is its result, and no denial of work. A server reports a refusal apart from the
// request, on the connection.
type attempts struct {
	mu  sync.Mutex
	all map[string]context.CancelFunc
}

// refuse reports whether an error of the connection is the refusal of an attempt, which it ends.
func (a *attempts) refuse(err error) bool {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	_, rest, _ := strings.Cut(err.Error(), `"`)
	subject, _, _ := strings.Cut(rest, `"`)
	a.mu.Lock()
	defer a.mu.Unlock()
	end := a.all[subject]
	if end != nil {
		end()
	}
	return end != nil
}

// errNotPermitted is the cause of the end of an attempt that the server has refused.
var errNotPermitted = errors.New("this user may not make the request")

// attempt makes a request to a subject. permitted is false if the server refuses it. There is at
// most one attempt at a time to a subject.
func (l *Log) attempt(ctx context.Context, subject string, request func(context.Context) error) (permitted bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.attempts.mu.Lock()
	if l.attempts.all == nil {
		l.attempts.all = map[string]context.CancelFunc{}
	}
	l.attempts.all[subject] = func() { cancel(errNotPermitted) }
	l.attempts.mu.Unlock()
	defer func() {
		l.attempts.mu.Lock()
		defer l.attempts.mu.Unlock()
		delete(l.attempts.all, subject)
	}()
	if err = request(ctx); err != nil && errors.Is(context.Cause(ctx), errNotPermitted) {
		return false, nil
	}
	return true, err
}
