package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
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
	// slots are taken by messages in work; they are shared by the partitions.
	slots chan struct{}
	free  func()
	// freed says that a slot has come free.
	freed    chan struct{}
	handling *sync.WaitGroup
	handle   func(context.Context, *nats.Msg)

	inbox   string
	request string
	// asked is how many messages were asked for and have not come.
	asked int
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
	anew := make(chan struct{}, 1)
	unhook := l.hookReconnect(func() { signal(anew) })
	defer func() {
		unhook()
		_ = sub.Unsubscribe()
		p.putBack(messages)
	}()
	// What was asked for may be lost with the server that was asked.
	silence := 2*p.lapse + 500*time.Millisecond
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
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
			p.asked = 0
		case <-quiet.C:
			p.asked = 0
		case <-retry.C:
			waiting = false
		case <-p.freed:
			continue // says nothing about the server
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
		quiet.Reset(silence)
	}
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
	n := min(p.batch, cap(p.slots)-len(p.slots)) - p.asked
	if n <= 0 || p.asked > p.batch/2 {
		return nil
	}
	body, err := json.Marshal(struct {
		Batch   int           `json:"batch"`
		Expires time.Duration `json:"expires"`
	}{n, p.lapse})
	if err != nil {
		return err
	}
	if err := p.log.nc.PublishRequest(p.request, p.inbox, body); err != nil {
		if errors.Is(err, nats.ErrConnectionClosed) {
			return unavailable("consumer "+p.durable, err)
		}
		return nil // not connected: it is asked again
	}
	p.asked += n
	return nil
}

// take handles what came in: a message, or the end of a request. ok is false
// when the consumer cannot be asked now.
func (p *pull) take(ctx context.Context, m *nats.Msg) (ok bool, err error) {
	status := m.Header.Get(natsStatus)
	if status == "" || len(m.Data) > 0 || m.Reply != "" {
		p.asked = max(0, p.asked-1)
		p.begin(ctx, m)
		return true, nil
	}
	if unfilled, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")); err == nil {
		p.asked = max(0, p.asked-unfilled)
		return true, nil
	}
	p.asked = 0
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

// begin handles a message in a goroutine of its own. With several partitions
// more may come than there are slots; they wait for one here, and are given to
// other workers when none comes free soon.
func (p *pull) begin(ctx context.Context, m *nats.Msg) {
	p.handling.Add(1)
	select {
	case p.slots <- struct{}{}:
	default:
		busy := time.NewTimer(p.lapse)
		defer busy.Stop()
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			p.handling.Done()
			_ = m.Nak()
			return
		case <-busy.C:
			p.handling.Done()
			_ = m.Nak()
			return
		}
	}
	go func() {
		defer p.handling.Done()
		defer p.free()
		p.handle(ctx, m)
	}()
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
