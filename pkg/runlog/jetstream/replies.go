package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// replies receives batched answers over one subscription, so that a batch does
// not cost a subscription of its own.
type replies struct {
	nc     *nats.Conn
	prefix string

	mu   sync.Mutex
	next uint64
	open map[string]chan *nats.Msg
}

func newReplies(nc *nats.Conn) (*replies, error) {
	r := &replies{nc: nc, prefix: nats.NewInbox() + ".", open: map[string]chan *nats.Msg{}}
	_, err := nc.Subscribe(r.prefix+"*", func(m *nats.Msg) {
		r.mu.Lock()
		ch := r.open[strings.TrimPrefix(m.Subject, r.prefix)]
		r.mu.Unlock()
		if ch == nil {
			return // the one who asked has left
		}
		select {
		case ch <- m:
		default: // more than a run has subjects: not an answer to our request
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to answers: %w", err)
	}
	return r, nil
}

// multi sends a batch request and collects its answers up to the end-of-batch
// mark, which says how far the answering replica is.
func (r *replies) multi(ctx context.Context, subject string, request []byte) (messages []*nats.Msg, upTo uint64, err error) {
	// One answer for each subject of a run: its executors, park, end, journal,
	// inbox, and the end mark.
	ch := make(chan *nats.Msg, 128)
	r.mu.Lock()
	r.next++
	id := strconv.FormatUint(r.next, 36)
	r.open[id] = ch
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.open, id)
		r.mu.Unlock()
	}()
	if err := r.nc.PublishRequest(subject, r.prefix+id, request); err != nil {
		return nil, 0, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		case m := <-ch:
			switch m.Header.Get(natsStatus) {
			case "":
				messages = append(messages, m)
			case "204":
				upTo, err := strconv.ParseUint(m.Header.Get(natsUpTo), 10, 64)
				return messages, upTo, err
			case "404":
				return nil, 0, errMissing
			case "503":
				return nil, 0, nats.ErrNoResponders
			default:
				return nil, 0, fmt.Errorf("batch get: %s %s", m.Header.Get(natsStatus), m.Header.Get("Description"))
			}
		}
	}
}
