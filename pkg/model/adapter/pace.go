package adapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

const (
	// plainFactor is how many idle timeouts a response may take that is not
	// streamed, or whose events add nothing: nothing arrives before all of it is written.
	plainFactor = 5
	// endlessFactor is how many idle timeouts a whole streamed response may take: 2 hours
	// by default, in which a slow model writes its longest answer.
	endlessFactor = 60
	// tailTimeout bounds the wait for the usage after the response is complete.
	tailTimeout = 5 * time.Second
)

// The causes of the end of a try whose stream does not come to an end by itself.
var (
	errEmpty   = errors.New("no event added to the answer within the limit")
	errEndless = errors.New("the answer did not end within the limit")
)

// pace ends a try that makes no progress. It is the rule for streams that stall:
//
//   - no event within the idle timeout;
//   - no event that adds to the answer within the idle timeout, or within five of them from
//     services that send other events while the model thinks;
//   - no end of the answer within sixty idle timeouts.
type pace struct {
	idle, empty, endless *wire.Idle
}

// startPace starts the timers of a try.
func startPace(idle time.Duration, cancel context.CancelCauseFunc) *pace {
	return &pace{
		idle:    wire.StartIdle(idle, wire.ErrIdle, cancel),
		empty:   wire.StartIdle(plainFactor*idle, errEmpty, cancel),
		endless: wire.StartIdle(endlessFactor*idle, errEndless, cancel),
	}
}

// restart begins again, for another request of the try.
func (p *pace) restart() {
	p.resume(true)
	p.endless.Restart()
}

// pause stops the timers while the caller handles an event; grown reports whether it adds
// to the answer.
func (p *pace) pause(grown bool) {
	p.idle.Stop()
	if grown {
		p.empty.Stop()
	}
}

// resume starts the timers again after pause.
func (p *pace) resume(grown bool) {
	p.idle.Restart()
	if grown {
		p.empty.Restart()
	}
}

// shorten lowers the idle timeout.
func (p *pace) shorten(limit time.Duration) {
	p.idle.Shorten(limit)
	p.empty.Shorten(limit)
}

func (p *pace) stop() {
	p.idle.Stop()
	p.empty.Stop()
	p.endless.Stop()
}

// failure returns the error of a try that cause has ended; nil if it was none of the pace's.
func (p *pace) failure(host string, cause error) *model.Error {
	switch {
	case errors.Is(cause, wire.ErrIdle):
		return Cut(fmt.Sprintf("%s sent nothing for %s", host, p.idle.Limit()), cause)
	case errors.Is(cause, errEmpty):
		return Cut(fmt.Sprintf("%s sent only empty events for %s", host, p.empty.Limit()), cause)
	case errors.Is(cause, errEndless):
		return Cut(fmt.Sprintf("the answer of %s had no end after %s", host, p.endless.Limit()), cause)
	}
	return nil
}
