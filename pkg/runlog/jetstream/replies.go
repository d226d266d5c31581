package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// replies receives batched answers over one subscription, so that a batch needs no
// subscription.
type replies struct {
	nc     *nats.Conn
	prefix string

	mu   sync.Mutex
	next uint64
	open map[string]*batch
}

// batch is a request whose answers are being collected.
type batch struct {
	messages []*nats.Msg
	last     string // sequence of the newest message, in the server's format
	upTo     uint64
	err      error
	done     chan struct{} // closed when the batch is complete or has failed
}

// errIncomplete means that a part of a batch was lost. The rest must not be used as the
// newest records.
var errIncomplete = errors.New("a part of the answer was lost")

func newReplies(nc *nats.Conn) (*replies, error) {
	r := &replies{nc: nc, prefix: nc.NewInbox() + ".", open: map[string]*batch{}}
	_, err := nc.Subscribe(r.prefix+"*", func(m *nats.Msg) {
		id := strings.TrimPrefix(m.Subject, r.prefix)
		r.mu.Lock()
		defer r.mu.Unlock()
		b := r.open[id]
		if b == nil {
			return // the caller has returned
		}
		if b.add(m) {
			delete(r.open, id)
			close(b.done)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to answers: %w", err)
	}
	return r, nil
}

// add adds an answer and reports whether it is the last one. Each message names the one
// before it in the batch, and so does the mark at the end.
func (b *batch) add(m *nats.Msg) (last bool) {
	status := m.Header.Get(natsStatus)
	if (status == "" || status == "204") && ofServer(m.Header, natsLast) != b.last {
		b.err = errIncomplete
		return true
	}
	switch status {
	case "":
		b.messages = append(b.messages, m)
		b.last = ofServer(m.Header, natsSequence)
		return false
	case "204":
		if ofServer(m.Header, natsPending) != "0" {
			b.err = errIncomplete
			return true
		}
		b.upTo, b.err = strconv.ParseUint(ofServer(m.Header, natsUpTo), 10, 64)
	case "404":
		b.err = errMissing
	case "503":
		b.err = nats.ErrNoResponders
	default:
		b.err = fmt.Errorf("batch get: %s %s", status, m.Header.Get("Description"))
	}
	return true
}

// multi sends a batch request and collects its answers up to the end-of-batch mark,
// which contains the last sequence of the replica that answers.
func (r *replies) multi(ctx context.Context, subject string, request []byte) (messages []*nats.Msg, upTo uint64, err error) {
	b := &batch{last: "0", done: make(chan struct{})}
	r.mu.Lock()
	r.next++
	id := strconv.FormatUint(r.next, 36)
	r.open[id] = b
	r.mu.Unlock()
	if err := r.nc.PublishRequest(subject, r.prefix+id, request); err != nil {
		r.forget(id)
		return nil, 0, err
	}
	select {
	case <-ctx.Done():
		r.forget(id)
		return nil, 0, context.Cause(ctx)
	case <-b.done:
		return b.messages, b.upTo, b.err
	}
}

func (r *replies) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, id)
}
