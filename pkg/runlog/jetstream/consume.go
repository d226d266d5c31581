package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// delivery is one delivery of a record or an inbox item.
type delivery struct {
	*lease
	slot  *slot
	entry runlog.Entry
	inbox bool
}

func (d *delivery) Entry() runlog.Entry { return d.entry }
func (d *delivery) IsInbox() bool       { return d.inbox }

// Wait calls wait without a slot of the consumer.
func (d *delivery) Wait(ctx context.Context, wait func()) error { return d.slot.wait(ctx, wait) }

// lease is the time for which a worker has a delivered message.
type lease struct {
	msg         *nats.Msg
	number      uint64
	redelivered bool
	// current returns an error if the stream has lost messages since the delivery: its
	// sequence may belong to another message by now.
	current func() error

	ackWait time.Duration
	mu      sync.Mutex
	until   time.Time // when the server delivers the message again
}

func (l *Log) lease(p int, m *nats.Msg, meta *nats.MsgMetadata, arrived time.Time) *lease {
	h := l.histories[p]
	epoch := h.epoch.Load()
	return &lease{
		msg:         m,
		number:      meta.NumDelivered,
		redelivered: meta.NumDelivered > 1,
		current: func() error {
			ctx, cancel := l.bounded(context.Background())
			defer cancel()
			if _, err := l.gate(ctx, p); err != nil {
				return err
			}
			if h.epoch.Load() != epoch {
				return errOver
			}
			return nil
		},
		ackWait: l.AckWait(),
		until:   arrived.Add(l.AckWait() * 9 / 10), // the server's clock started earlier
	}
}

func (d *lease) Redelivered() bool { return d.redelivered }
func (d *lease) Number() uint64    { return d.number }

// Ack acknowledges the message.
func (d *lease) Ack() error {
	if err := d.current(); err != nil {
		return err
	}
	return d.msg.Ack()
}

// InProgress extends a delivery that has not expired. One that has expired may be
// another worker's by now.
func (d *lease) InProgress() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if now.After(d.until) {
		return errOver
	}
	if err := d.current(); err != nil {
		return err
	}
	d.until = now.Add(d.ackWait * 9 / 10)
	return d.msg.InProgress()
}

// Nak puts the message back unless the delivery has expired: the server does not check
// the sender of a Nak, so another worker would lose the message.
func (d *lease) Nak(delay time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().After(d.until) {
		return errOver
	}
	if err := d.current(); err != nil {
		return err
	}
	return d.msg.NakWithDelay(delay)
}

var errOver = errors.New("the delivery has expired")

// Consume delivers the steps addressed to an executor.
func (l *Log) Consume(ctx context.Context, executor string, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return l.consume(ctx, execConsumer(executor), concurrency, handle)
}

// ConsumeWakes delivers what can wake a run.
func (l *Log) ConsumeWakes(ctx context.Context, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return l.consume(ctx, wakeConsumer, concurrency, handle)
}

func (l *Log) consume(ctx context.Context, durable string, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return l.pullAll(ctx, runsStream, durable, concurrency, func(ctx context.Context, m *nats.Msg, s *slot) {
		d, err := l.delivered(ctx, m, s)
		switch {
		case err != nil:
			l.drop(m, err)
		case d != nil:
			handle(ctx, d)
		}
	})
}

// drop ends the delivery of a message that the log would not write.
func (l *Log) drop(m *nats.Msg, err error) {
	l.logger.Error("dropped an invalid message", "subject", m.Subject, "error", err)
	_ = m.Term()
}

// pullAll pulls from a durable consumer of every partition until ctx ends or one of
// them is deleted. It returns once handle has returned for all messages.
func (l *Log) pullAll(ctx context.Context, stream func(int) string, durable string, concurrency int, handle func(context.Context, *nats.Msg, *slot)) error {
	var handling sync.WaitGroup
	defer handling.Wait()
	g, ctx := errgroup.WithContext(ctx)
	room := newSlots(concurrency)
	var pulls []*pull
	for p := range l.partitions {
		info, err := asked(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return l.js.Consumer(ctx, stream(p), durable) })
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("stream %s has no consumer %s: run `harness provision` for it first", stream(p), durable)
		}
		if err != nil {
			return ended(ctx, unavailable("consumer "+durable, err))
		}
		freed := make(chan struct{}, 1)
		room.freed = append(room.freed, freed)
		pulls = append(pulls, &pull{
			log: l, stream: stream(p), durable: durable,
			batch: max(1, min(prefetch, room.size/l.partitions)), lapse: runlog.Lapse(info.CachedInfo().Config.AckWait),
			slots: room, freed: freed, handling: &handling, handle: handle,
		})
	}
	for _, p := range pulls {
		g.Go(func() error { return p.run(ctx) })
	}
	err := g.Wait()
	return ended(ctx, err)
}

// ended returns the cause of ctx if it has ended, else err.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// intake is a set of client consumers.
type intake struct {
	running []jetstream.ConsumeContext
	watched sync.WaitGroup
}

// add adds c. lost is called when c ends: by stop, because its consumer was deleted, or
// because the connection was closed permanently.
func (i *intake) add(c jetstream.ConsumeContext, lost func()) {
	// The client closes the channel that Closed returns as soon as the subscription is
	// cancelled. Only a channel from an earlier call waits for the last callback.
	ended := c.Closed()
	i.running = append(i.running, c)
	i.watched.Add(1)
	go func() {
		defer i.watched.Done()
		<-ended
		lost()
	}()
}

// stop stops all consumers and returns after the last callback.
func (i *intake) stop() {
	for _, c := range i.running {
		c.Stop()
	}
	i.watched.Wait()
}

// delivered returns the delivery of a message, nil if the message is not stored any more.
func (l *Log) delivered(ctx context.Context, m *nats.Msg, s *slot) (*delivery, error) {
	address, err := runlog.ParseSubject(m.Subject)
	if err != nil {
		return nil, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	arrived := time.Now()
	if !l.admits(ctx, address.Partition, m, meta.Sequence.Stream) {
		return nil, nil
	}
	l.saw(address.Partition, meta.Sequence.Stream, m.Subject, m.Data)
	return &delivery{
		lease: l.lease(address.Partition, m, meta, arrived),
		slot:  s,
		entry: l.entry(address, meta.Sequence.Stream, m.Header, m.Data),
		inbox: address.Kind == runlog.KindInbox,
	}, nil
}

// Executors lists the executors that have a durable consumer, and workflow.Inference if
// jobs have one, by name.
func (l *Log) Executors(ctx context.Context) ([]string, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	stream, err := l.js.Stream(ctx, runsStream(0))
	if err != nil {
		return nil, unavailable("list executors", err)
	}
	var names []string
	lister := stream.ConsumerNames(ctx)
	for name := range lister.Name() {
		if executor, ok := strings.CutPrefix(name, execPrefix); ok {
			names = append(names, executor)
		}
		if name == jobConsumer {
			names = append(names, workflow.Inference)
		}
	}
	if err := lister.Err(); err != nil {
		return nil, unavailable("list executors", err)
	}
	slices.Sort(names)
	return names, nil
}
