package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// prefetch bounds what is asked for at once.
const prefetch = 32

// pull brings in the messages of one durable consumer.
//
// It asks only for as many messages as there are free slots, so that none waits
// in this process while its AckWait runs, and for a short time only: a worker
// that hangs keeps what it asked for, and the server gives it the steps of the
// dead until its request lapses. (The client library's own consumers ask for a
// second at the least.)
type pull struct {
	log             *Log
	stream, durable string
	batch           int
	lapse           time.Duration
	// slots are shared by the partitions; freed says that one may be free.
	slots    *slots
	freed    chan struct{}
	handling *sync.WaitGroup
	handle   func(context.Context, *nats.Msg)

	inbox   string
	request string
	// asked is how many messages were asked for and have not come.
	asked int
	// heard is when the server last said anything, in nanoseconds since 1970.
	heard atomic.Int64
}

// Pauses before a consumer that does not answer is asked again.
const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// run pulls until ctx ends, with its cause, or the consumer is gone.
func (p *pull) run(ctx context.Context) error {
	l := p.log
	p.inbox = l.nc.NewInbox()
	p.request = "$JS.API.CONSUMER.MSG.NEXT." + p.stream + "." + p.durable
	messages := make(chan *nats.Msg, 4*p.batch+64)
	sub, err := l.nc.ChanSubscribe(p.inbox, messages)
	if err != nil {
		return unavailable("consumer "+p.durable, err)
	}
	p.heard.Store(time.Now().UnixNano())
	defer l.pulls.add(p)()
	anew := make(chan struct{}, 1)
	unhook := l.hookReconnect(func() { signal(anew) })
	defer func() {
		unhook()
		_ = sub.Unsubscribe()
		p.forget()
		p.putBack(messages)
	}()
	// What was asked for may be lost with the server that was asked.
	silence := func() time.Duration { return 2*p.lapse + 500*time.Millisecond }
	quiet := time.NewTimer(silence())
	defer quiet.Stop()
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	retry := time.NewTimer(0)
	defer retry.Stop()
	pause := minPause
	waiting := true // for retry; nothing is asked for meanwhile
	for {
		if !waiting {
			if err := p.ask(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.closed:
			return fmt.Errorf("consumer %s: %w: the connection is closed", p.durable, runlog.ErrUnavailable)
		case <-anew:
			p.forget()
		case <-quiet.C:
			p.forget()
		case <-retry.C:
			waiting = false
		case <-p.freed:
			continue // says nothing about the server
		case <-renew.C:
			p.renew(ctx)
			continue
		case m := <-messages:
			ok, err := p.take(ctx, m)
			if err != nil {
				return err
			}
			if ok {
				pause = minPause
				break
			}
			waiting = true
			retry.Reset(pause)
			pause = min(2*pause, maxPause)
		}
		quiet.Reset(silence())
	}
}

// renewEvery is how often a worker looks whether the takeover time was changed.
const renewEvery = 5 * time.Second

// renew takes over a changed AckWait: signs of life that come too seldom would
// take every long step from this worker.
func (p *pull) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.lapse)
	defer cancel()
	info, err := p.log.js.Consumer(ctx, p.stream, p.durable)
	if err != nil {
		return // the next one may be luckier
	}
	wait := info.CachedInfo().Config.AckWait
	p.lapse = runlog.Lapse(wait)
	if p.stream == runsStream(0) {
		p.log.ackWait.Store(int64(wait))
	}
}

// forget takes it that nothing of what was asked for will come.
func (p *pull) forget() {
	p.slots.release(p.asked)
	p.asked = 0
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ask asks for as many messages as can be begun, unless most of them are asked
// for already.
func (p *pull) ask() error {
	if p.asked > p.batch/2 {
		return nil
	}
	n := p.slots.reserve(p.batch-p.asked, p.asked == 0)
	if n == 0 {
		return nil
	}
	p.asked += n
	body, err := json.Marshal(struct {
		Batch   int           `json:"batch"`
		Expires time.Duration `json:"expires"`
	}{n, p.lapse})
	if err != nil {
		return err
	}
	if err := p.log.nc.PublishRequest(p.request, p.inbox, body); errors.Is(err, nats.ErrConnectionClosed) {
		return unavailable("consumer "+p.durable, err)
	}
	return nil // where it was not sent, silence makes that known
}

// take handles what came in: a message, or the end of a request. ok is false
// when the consumer cannot be asked now.
func (p *pull) take(ctx context.Context, m *nats.Msg) (ok bool, err error) {
	p.heard.Store(time.Now().UnixNano())
	status := m.Header.Get(natsStatus)
	if status == "" || len(m.Data) > 0 || m.Reply != "" {
		p.less(1)
		p.begin(ctx, m)
		return true, nil
	}
	if unfilled, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")); err == nil {
		p.less(unfilled)
		return true, nil
	}
	p.forget()
	if status != "503" && status != "409" {
		return false, nil
	}
	// Nobody answers, or not any more: between two leaders, or for ever.
	ctx, cancel := p.log.bounded(ctx)
	defer cancel()
	_, err = p.log.js.Consumer(ctx, p.stream, p.durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, fmt.Errorf("consumer %s: %w: it was deleted, deliveries have stopped", p.durable, runlog.ErrUnavailable)
	}
	return false, nil
}

// less takes it that n of what was asked for came or will not come.
func (p *pull) less(n int) {
	n = min(n, p.asked)
	p.slots.release(n)
	p.asked -= n
}

// begin handles a message in a goroutine of its own. When more came than there
// are slots, which is possible after requests that were taken for lost, the
// message is for another worker.
func (p *pull) begin(ctx context.Context, m *nats.Msg) {
	if ctx.Err() != nil || !p.slots.begin() {
		_ = m.Nak()
		return
	}
	p.handling.Go(func() {
		defer p.slots.end()
		p.handle(ctx, m)
	})
}

// putBack gives what was delivered and not begun to other workers at once.
func (p *pull) putBack(messages <-chan *nats.Msg) {
	for {
		select {
		case m := <-messages:
			if m.Reply != "" {
				_ = m.Nak()
			}
		default:
			return
		}
	}
}

// pulls are those that run.
type pulls struct {
	mu  sync.Mutex
	all map[*pull]bool
}

func (s *pulls) add(p *pull) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*pull]bool{}
	}
	s.all[p] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, p)
	}
}

// mute is the silence after which a consumer is called mute. The server ends
// every request within a lapse.
const mute = 15 * time.Second

// fullFor is how long a stream that was found full is taken to be so.
const fullFor = 10 * time.Second

// Trouble says what keeps this process from taking steps in or storing them:
// consumers that do not answer, a stream that is full, a user without permission; nil when nothing does.
func (l *Log) Trouble() error {
	if time.Since(time.Unix(0, l.full.Load())) < fullFor {
		return errFull
	}
	if err := l.denied.err(l.url); err != nil {
		return err
	}
	l.pulls.mu.Lock()
	defer l.pulls.mu.Unlock()
	for p := range l.pulls.all {
		since := time.Since(time.Unix(0, p.heard.Load()))
		if since > mute && !p.slots.full() {
			return fmt.Errorf("consumer %s of stream %s has not answered since %s: NATS hangs, the consumer has no leader, or this user may not ask it",
				p.durable, p.stream, time.Unix(0, p.heard.Load()).UTC().Format(time.TimeOnly))
		}
	}
	return nil
}
