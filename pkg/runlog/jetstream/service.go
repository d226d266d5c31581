package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// service records whether JetStream answers. A server that is reached may have it
// switched off, after a full disk, or the stream may have no leader: then no request
// gets an answer, and a process that makes none does not notice.
type service struct {
	since atomic.Int64 // the first of the unanswered requests, nanoseconds since 1970; 0 after an answer
}

// serviceBound is how long JetStream may not answer: a cluster elects a leader meanwhile.
const serviceBound = 8 * time.Second

// err returns a *runlog.Stall if JetStream has not answered for longer than the bound.
func (s *service) err(url string) error {
	ns := s.since.Load()
	since := time.Unix(0, ns)
	if ns == 0 || time.Since(since) < serviceBound {
		return nil
	}
	return &runlog.Stall{Text: fmt.Sprintf("JetStream of NATS at %s has not answered since %s: it is switched off after a full disk, or too few of its servers run; make room on the disks and restart NATS",
		url, since.UTC().Format(time.TimeOnly))}
}

// Pauses between two requests of attend, in the order of answered and unanswered ones.
const (
	attendEvery = 4 * time.Second
	attendAgain = time.Second
)

// attend asks for the state of the first stream until the connection is closed.
func (l *Log) attend() {
	for pause := attendEvery; ; {
		next := time.NewTimer(pause + time.Duration(rand.Int64N(int64(pause/4))))
		select {
		case <-l.closed:
			next.Stop()
			return
		case <-next.C:
		}
		if l.Connected() != nil {
			l.service.since.Store(0) // a lost connection is a separate reason
			pause = attendAgain
			continue
		}
		asked := time.Now()
		if l.serves() {
			l.service.since.Store(0)
			pause = attendEvery
			continue
		}
		l.service.since.CompareAndSwap(0, asked.UnixNano())
		pause = attendAgain
	}
}

// codeNotEnabled is the error code of a server without JetStream.
const codeNotEnabled jetstream.ErrorCode = 10076

// serves reports whether JetStream answers.
func (l *Log) serves() bool {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout/tries)
	defer cancel()
	m, err := l.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+runsStream(0), nil)
	if err != nil {
		return l.denied.err(l.url) != nil // then nothing is known
	}
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if json.Unmarshal(m.Data, &answer) != nil || answer.Error == nil {
		return true
	}
	return answer.Error.ErrorCode != codeNotYet && answer.Error.ErrorCode != codeNotEnabled
}
