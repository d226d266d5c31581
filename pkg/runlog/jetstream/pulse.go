package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// pulse records whether the server of a connection answers. It is read without the lock
// of the client, which holds that while it dials and writes.
type pulse struct {
	heard atomic.Int64         // when the server last answered, nanoseconds since 1970
	lost  atomic.Pointer[loss] // nil while there is a connection
}

// loss is a lost connection.
type loss struct {
	since time.Time
	// why is what ended it, then why the first try to connect again failed: later ones
	// fail at other servers, and a reason that changes is reported again and again.
	why   error
	tried bool
}

func (p *pulse) hear() {
	p.heard.Store(time.Now().UnixNano())
	p.lost.Store(nil)
}

// lose records that the connection has ended.
func (p *pulse) lose(err error) {
	if err == nil {
		err = errors.New("the connection has ended")
	}
	p.lost.Store(&loss{since: time.Now(), why: err})
}

// fail records that a try to connect again has failed.
func (p *pulse) fail(err error) {
	if l := p.lost.Load(); l != nil && !l.tried {
		p.lost.Store(&loss{since: l.since, why: err, tried: true})
	}
}

// last returns when the server last answered.
func (p *pulse) last() time.Time { return time.Unix(0, p.heard.Load()) }

// writeTimeout bounds one write to a server.
const writeTimeout = 5 * time.Second

// Parts of the takeover time: a process asks the server whether it answers every tenth,
// and a server that has been silent for seven tenths counts as hung. So a process
// reports that within the takeover time.
const (
	askParts   = 10
	silentPart = 7
)

// hopeless is the least silence after which the connection is given up for one to
// another server.
const hopeless = 5 * time.Second

// listen asks the server whether it answers until the connection is closed. With three
// servers, the client then leaves one that hangs for another one.
func (l *Log) listen() {
	received := uint64(0)
	given := time.Time{} // the last answer before the connection was given up
	for {
		part := l.takeover() / askParts
		next := time.NewTimer(part)
		ctx, cancel := context.WithTimeout(context.Background(), part)
		err := l.nc.FlushWithContext(ctx)
		cancel()
		// An answer that follows many messages arrives late. They count, too.
		if in := l.nc.Stats().InBytes; err == nil || in != received && l.pulse.lost.Load() == nil {
			received = in
			l.pulse.heard.Store(time.Now().UnixNano())
		}
		if last := l.pulse.last(); l.pulse.lost.Load() == nil && time.Since(last) > max(l.takeover(), hopeless) && last != given {
			given = last
			l.logger.Warn("NATS does not answer: connecting again", "since", last)
			_ = l.nc.ForceReconnect() // only fails on a closed connection
		}
		select {
		case <-l.closed:
			next.Stop()
			return
		case <-next.C:
		}
	}
}

func (l *Log) takeover() time.Duration { return runlog.TakeoverOf(l.AckWait()) }

// Connected returns nil if the bus can be reached and answers, else the reason. It does
// not wait.
func (l *Log) Connected() error {
	select {
	case <-l.closed:
		return errors.New("the connection to NATS is closed")
	default:
	}
	if lost := l.pulse.lost.Load(); lost != nil {
		return fmt.Errorf("NATS at %s cannot be reached: %w, since %s", l.url, lost.why, lost.since.UTC().Format(time.TimeOnly))
	}
	if last := l.pulse.last(); time.Since(last) > l.takeover()*silentPart/askParts {
		return fmt.Errorf("NATS at %s has not answered since %s: it hangs, or the network to it is interrupted", l.url, last.UTC().Format(time.TimeOnly))
	}
	return nil
}
