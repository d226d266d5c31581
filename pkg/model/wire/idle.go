package wire

import (
	"context"
	"errors"
	"time"
)

// ErrIdle is the cause of the end of a request to a server that sends nothing.
var ErrIdle = errors.New("no data within the idle timeout")

// Idle cancels a request when the server sends nothing for too long.
type Idle struct {
	timer *time.Timer
	limit time.Duration
}

// StartIdle starts a timer that calls cancel with cause after limit.
func StartIdle(limit time.Duration, cause error, cancel context.CancelCauseFunc) *Idle {
	return &Idle{timer: time.AfterFunc(limit, func() { cancel(cause) }), limit: limit}
}

// Limit returns the longest silence.
func (i *Idle) Limit() time.Duration { return i.limit }

// Stop stops the timer, while the caller handles what arrived.
func (i *Idle) Stop() { i.timer.Stop() }

// Restart starts the timer again with the whole limit.
func (i *Idle) Restart() { i.timer.Reset(i.limit) }

// Shorten lowers the limit from the next Restart on. It never raises it.
func (i *Idle) Shorten(limit time.Duration) { i.limit = min(i.limit, limit) }
