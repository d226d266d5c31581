package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// prefetch bounds one request for messages.
const prefetch = 32

// pull receives the messages of one durable consumer.
//
// It requests only as many messages as there are free slots, so that none waits in this
// process while its AckWait runs. Its requests are short: until the request of a worker
// that hangs expires, the server delivers the steps of dead workers to it. (The client
// library's consumers request for a second or more.)
type pull struct {
	log             *Log
	stream, durable string
	batch           int
	lapse           time.Duration
	// slots are shared by the partitions. freed receives a value when one may be free.
	slots    *slots
	freed    chan struct{}
	handling *sync.WaitGroup
	handle   func(context.Context, *nats.Msg, *slot)

	inbox   string
	request string
	// asked counts the messages that were requested and have not arrived.
	asked int
	// heard is the time of the server's last message, in nanoseconds since 1970.
	heard atomic.Int64
}

// Pauses before a consumer that does not answer gets another request.
const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// run pulls until ctx ends and returns its cause, or until the consumer is deleted.
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
	reconnected := make(chan struct{}, 1)
	unhook := l.hookReconnect(func() { signal(reconnected) })
	defer func() {
		unhook()
		_ = sub.Unsubscribe()
		p.forget()
		p.putBack(messages)
	}()
	// Requests may be lost with the server that received them.
	silence := func() time.Duration { return 2*p.lapse + 500*time.Millisecond }
	quiet := time.NewTimer(silence())
	defer quiet.Stop()
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	retry := time.NewTimer(0)
	defer retry.Stop()
	pause := minPause
	waiting := true // for retry; no request is made meanwhile
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
		case <-reconnected:
			p.forget()
		case <-quiet.C:
			p.forget()
		case <-retry.C:
			waiting = false
		case <-p.freed:
			continue // not a message of the server
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

// renewEvery is the interval at which a worker reads the takeover time.
const renewEvery = 5 * time.Second

// renew adopts a changed AckWait: with heartbeats that are too rare this worker would
// lose every long step. It also compares the clock of the server.
func (p *pull) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.lapse)
	defer cancel()
	asked := time.Now()
	info, err := p.log.js.Consumer(ctx, p.stream, p.durable)
	if err != nil {
		return // retried after the next interval
	}
	p.log.compareClock(info.CachedInfo(), asked)
	wait := info.CachedInfo().Config.AckWait
	p.lapse = runlog.Lapse(wait)
	if p.stream == runsStream(0) {
		p.log.ackWait.Store(int64(wait))
	}
}

// forget assumes that all open requests are lost.
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

// ask requests as many messages as can be started, unless most of them are requested
// already.
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
	return nil // if it was not sent, the silence is noticed
}

// take handles a message or the end of a request. ok is false if the consumer cannot be
// used now.
func (p *pull) take(ctx context.Context, m *nats.Msg) (ok bool, err error) {
	status := m.Header.Get(natsStatus)
	if status != "503" { // this one means that no server answers for the consumer
		p.heard.Store(time.Now().UnixNano())
	}
	if status == "" || len(m.Data) > 0 || m.Reply != "" {
		p.less(1)
		p.start(ctx, m)
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
	// No server answers: between two leaders, or permanently.
	ctx, cancel := p.log.bounded(ctx)
	defer cancel()
	_, err = p.log.js.Consumer(ctx, p.stream, p.durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, fmt.Errorf("consumer %s: %w: it was deleted", p.durable, runlog.ErrUnavailable)
	}
	return false, nil
}

// less removes n messages from those that are expected.
func (p *pull) less(n int) {
	n = min(n, p.asked)
	p.slots.release(n)
	p.asked -= n
}

// start handles a message in a new goroutine. If there is no slot, which is possible
// after requests that were assumed lost, it puts the message back for another worker.
func (p *pull) start(ctx context.Context, m *nats.Msg) {
	if ctx.Err() != nil {
		_ = m.Nak()
		return
	}
	taken, ok := p.slots.acquire()
	if !ok {
		_ = m.Nak()
		return
	}
	p.handling.Go(func() {
		defer taken.end()
		growStack()
		p.handle(ctx, m, taken)
	})
}

// growStack makes room for handleStack bytes on the stack of a new goroutine. A handler
// needs them in any case, and the runtime would copy its stack three times on the way, each
// time with more frames to adjust.
//
//go:noinline
func growStack() {
	var room [handleStack]byte
	runtime.KeepAlive(&room)
}

const handleStack = 14 << 10

// putBack returns delivered messages that were not started, so that other workers get
// them immediately.
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

// pulls are the active pulls.
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

// mute is the silence after which a consumer counts as not answering. The server ends
// every request within a lapse.
const mute = 15 * time.Second

// fullFor is how long a stream counts as full after a refused write.
const fullFor = 10 * time.Second

// Trouble returns why this process cannot receive or store steps: consumers that do not
// answer, a stream that does not store or is missing, a missing permission. It returns nil if it can.
func (l *Log) Trouble() error {
	if err := l.denied.err(l.url); err != nil {
		return err
	}
	if err := l.Writable(); err != nil {
		return err
	}
	for _, h := range l.histories {
		if err := h.gone(); err != nil {
			return err
		}
	}
	if p := l.pulls.silent(); p != nil {
		return fmt.Errorf("consumer %s of stream %s has not answered since %s: NATS hangs, the consumer has no leader, or this user may not ask it",
			p.durable, p.stream, time.Unix(0, p.heard.Load()).UTC().Format(time.TimeOnly))
	}
	return nil
}

// silent returns the first pull by name that could receive messages and has not heard
// from the server for long; nil if there is none.
func (s *pulls) silent() (first *pull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.all {
		if time.Since(time.Unix(0, p.heard.Load())) <= mute || p.slots.full() {
			continue
		}
		if first == nil || p.stream+p.durable < first.stream+first.durable {
			first = p
		}
	}
	return first
}
