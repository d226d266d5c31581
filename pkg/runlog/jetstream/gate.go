package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errNotSent marks a write that was not sent because the history of its stream could not
// be verified.
var errNotSent = errors.New("not sent")

// established waits until the connection to the server is established. The client buffers
// nothing meanwhile: what it sends after a reconnect may belong to a history that the bus
// has lost.
func (l *Log) established(ctx context.Context) error {
	reconnected := make(chan struct{}, 1)
	defer l.hookReconnect(func() { signal(reconnected) })()
	if l.nc.IsConnected() {
		return nil
	}
	select {
	case <-reconnected:
		return nil
	case <-l.closed:
		return nats.ErrConnectionClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// request makes a request that changes nothing, or whose result is determined by reading.
func (l *Log) request(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	for {
		m, err := l.nc.RequestMsgWithContext(ctx, msg)
		if !errors.Is(err, nats.ErrReconnectBufExceeded) {
			return m, err
		}
		if err := l.established(ctx); err != nil {
			return nil, err
		}
	}
}

// publish sends a message that may be sent again. One try uses only a part of the time,
// so that a lost answer leaves enough to determine the result.
func (l *Log) publish(ctx context.Context, msg *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout/tries)
	defer cancel()
	for {
		ack, err := l.send(ctx, msg)
		if !errors.Is(err, nats.ErrReconnectBufExceeded) {
			return ack, err
		}
		if err := l.established(ctx); err != nil {
			return nil, err
		}
	}
}

// unanswered is how often a write is sent again while no server answers for its stream,
// and unansweredPause the wait before: between two leaders there is no answer.
const (
	unanswered      = 2
	unansweredPause = 250 * time.Millisecond
)

// withoutRetries makes the client send a message a single time.
var withoutRetries = jetstream.WithRetryAttempts(0)

// write sends a record through the gate. It calls check, which must be cheap, before each
// try: only then the history is verified. lost reports whether the stream has lost
// messages meanwhile, or may have.
func (l *Log) write(ctx context.Context, p int, msg *nats.Msg, check func(context.Context) error) (ack *jetstream.PubAck, lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout/tries)
	defer cancel()
	h := l.histories[p]
	for n := 0; ; {
		connection, err := l.gate(ctx, p)
		if err != nil {
			return nil, false, fmt.Errorf("%w: %w", errNotSent, err)
		}
		epoch, newest := h.epoch.Load(), h.newest.Load()
		if err := check(ctx); err != nil {
			return nil, false, err
		}
		ack, err := l.send(ctx, msg, withoutRetries)
		switch {
		case err == nil:
			return ack, l.lostDuring(ctx, h, msg, ack.Sequence, connection, epoch, newest), nil
		case errors.Is(err, nats.ErrReconnectBufExceeded):
			if err := l.established(ctx); err != nil {
				return nil, false, fmt.Errorf("%w: %w", errNotSent, err)
			}
		case errors.Is(err, jetstream.ErrNoStreamResponse) && n < unanswered && pause(ctx, unansweredPause):
			n++
		case errors.Is(err, jetstream.ErrNoStreamResponse):
			_ = l.verify(ctx, h, connection, true) // the stream may be missing
			return nil, false, err
		default:
			return nil, false, err
		}
	}
}

// lostDuring reports whether the stream has lost messages since a write was prepared with
// the given connection, epoch and newest sequence. Without an answer it may have.
func (l *Log) lostDuring(ctx context.Context, h *history, msg *nats.Msg, sequence, connection, epoch, newest uint64) bool {
	var err error
	switch {
	case sequence <= newest: // used before
		err = l.verify(ctx, h, l.reconnects(), true)
	case l.reconnects() != connection:
		_, err = l.gate(ctx, h.partition)
	}
	if err != nil || h.epoch.Load() != epoch {
		return true
	}
	l.saw(h.partition, sequence, msg.Subject, msg.Data)
	return false
}

// admits reports whether a delivered message is still stored. One that was queued in this
// process while the stream lost its newest messages may be among them.
func (l *Log) admits(ctx context.Context, p int, m *nats.Msg, sequence uint64) bool {
	if h := l.histories[p]; l.verified(h) && !h.doubtful(sequence) {
		return true // the common case needs no request, and so no timer
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if _, err := l.gate(ctx, p); err != nil {
		return false // it is delivered again
	}
	if l.histories[p].doubtful(sequence) {
		stored, err := l.genuine(ctx, p, sequence, m.Subject, m.Data)
		return stored && err == nil
	}
	return true
}
