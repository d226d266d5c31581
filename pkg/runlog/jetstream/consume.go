package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// delivery is one delivery of a message.
type delivery struct {
	msg         jetstream.Msg
	entry       runlog.Entry
	inbox       bool
	redelivered bool
}

func (d *delivery) Entry() runlog.Entry { return d.entry }
func (d *delivery) IsInbox() bool       { return d.inbox }
func (d *delivery) Redelivered() bool   { return d.redelivered }
func (d *delivery) Ack() error          { return d.msg.Ack() }
func (d *delivery) InProgress() error   { return d.msg.InProgress() }
func (d *delivery) Nak(delay time.Duration) error {
	return d.msg.NakWithDelay(delay)
}

// Consume delivers the steps addressed to an executor.
func (l *Log) Consume(ctx context.Context, executor string, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return l.consume(ctx, execConsumer(executor), concurrency, handle)
}

// ConsumeWakes delivers what can wake a run.
func (l *Log) ConsumeWakes(ctx context.Context, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return l.consume(ctx, wakeConsumer, concurrency, handle)
}

// prefetch bounds the messages in the client's buffer: AckWait runs for them too.
const prefetch = 32

func (l *Log) consume(ctx context.Context, durable string, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	slots := make(chan struct{}, max(concurrency, 1))
	var handling sync.WaitGroup
	defer handling.Wait()
	var running []jetstream.ConsumeContext
	defer func() {
		for _, c := range running {
			c.Stop()
		}
		for _, c := range running {
			<-c.Closed()
		}
	}()
	for p := range l.partitions {
		consumer, err := l.js.Consumer(ctx, runsStream(p), durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("stream %s has no consumer %s: run `harness provision` for it first", runsStream(p), durable)
		}
		if err != nil {
			return unavailable("consumer "+durable, err)
		}
		c, err := consumer.Consume(func(m jetstream.Msg) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return // unhandled: it is delivered again, to another worker
			}
			d, err := l.delivered(m)
			if err != nil {
				l.logger.Error("message of unknown shape dropped", "subject", m.Subject(), "error", err)
				_ = m.Term()
				<-slots
				return
			}
			handling.Add(1)
			go func() {
				defer handling.Done()
				defer func() { <-slots }()
				handle(ctx, d)
			}()
		}, jetstream.PullMaxMessages(prefetch), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if ctx.Err() == nil && !errors.Is(err, jetstream.ErrNoHeartbeat) {
				l.logger.Warn("consumer", "consumer", durable, "error", err)
			}
		}))
		if err != nil {
			return unavailable("consumer "+durable, err)
		}
		running = append(running, c)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (l *Log) delivered(m jetstream.Msg) (*delivery, error) {
	address, err := runlog.ParseSubject(m.Subject())
	if err != nil {
		return nil, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	return &delivery{
		msg:         m,
		entry:       l.entry(address, meta.Sequence.Stream, m.Headers(), m.Data()),
		inbox:       address.Kind == runlog.KindInbox,
		redelivered: meta.NumDelivered > 1,
	}, nil
}

// Runs follows the steps that say how runs stand.
func (l *Log) Runs(ctx context.Context, caughtUp func(), handle func(runlog.Entry)) error {
	var mu sync.Mutex // one partition at a time
	behind := l.partitions
	arrived := func() {
		behind--
		if behind == 0 && caughtUp != nil {
			caughtUp()
		}
	}
	for p := range l.partitions {
		at := "hm.run." + fmt.Sprint(p) + ".*.*.log.step."
		consumer, err := l.js.OrderedConsumer(ctx, runsStream(p), jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{at + "repair", at + runlog.Park, at + runlog.End},
			DeliverPolicy:  jetstream.DeliverLastPerSubjectPolicy,
		})
		if err != nil {
			return unavailable("follow runs", err)
		}
		pending := consumer.CachedInfo().NumPending
		if pending == 0 {
			mu.Lock()
			arrived()
			mu.Unlock()
		}
		c, err := consumer.Consume(func(m jetstream.Msg) {
			mu.Lock()
			defer mu.Unlock()
			if d, err := l.delivered(m); err == nil {
				handle(d.entry)
			}
			if pending > 0 {
				if pending--; pending == 0 {
					arrived()
				}
			}
		})
		if err != nil {
			return unavailable("follow runs", err)
		}
		defer func() {
			c.Stop()
			<-c.Closed()
		}()
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// Executors lists the executors that have a durable consumer in every partition.
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
	}
	if err := lister.Err(); err != nil {
		return nil, unavailable("list executors", err)
	}
	return names, nil
}
