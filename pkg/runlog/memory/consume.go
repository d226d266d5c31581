package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// delivery is one delivery of a message.
type delivery struct {
	consumer    *consumer
	entry       runlog.Entry
	inbox       bool
	redelivered bool

	// Guarded by the log's mutex.
	until time.Time // when the server takes the message back, and somewhat before
	said  bool      // acknowledged or put back
}

var (
	errOver = errors.New("the delivery is over: the message was held for too long")
	errSaid = errors.New("the delivery is over: it was acknowledged or put back before")
)

func (d *delivery) Entry() runlog.Entry { return d.entry }
func (d *delivery) IsInbox() bool       { return d.inbox }
func (d *delivery) Redelivered() bool   { return d.redelivered }

// Ack counts whoever has the message by now.
func (d *delivery) Ack() error {
	return d.say(func() error {
		d.said = true
		d.consumer.ack(d.entry.Sequence)
		return nil
	})
}

// InProgress renews a hold that still exists. One that has run out is another
// worker's by now.
func (d *delivery) InProgress() error {
	return d.say(func() error {
		now := time.Now()
		if now.After(d.until) {
			return errOver
		}
		d.until = now.Add(d.consumer.log.hold())
		d.consumer.extend(d.entry.Sequence)
		return nil
	})
}

// Nak puts the message back, unless the hold has run out: it would take it from
// the worker that has it.
func (d *delivery) Nak(delay time.Duration) error {
	return d.say(func() error {
		if time.Now().After(d.until) {
			return errOver
		}
		d.putBack(delay)
		return nil
	})
}

func (d *delivery) putBack(delay time.Duration) {
	d.said = true
	d.consumer.nak(d.entry.Sequence, delay)
}

// say does what can be done once.
func (d *delivery) say(do func() error) error {
	l := d.consumer.log
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return unavailable("delivery", errClosed)
	case d.said:
		return errSaid
	}
	return do()
}

// hold is how long a worker takes a message for its own: over a network, the
// server's time began earlier.
func (l *Log) hold() time.Duration { return l.ackWait * 9 / 10 }

// Consume delivers the steps addressed to an executor.
func (l *Log) Consume(ctx context.Context, executor string, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	l.mu.Lock()
	c := l.executors[executor]
	l.mu.Unlock()
	if c == nil {
		return fmt.Errorf("the log has no consumer for %s: name it in Config.Executors or to Provision", executor)
	}
	return l.consume(ctx, c, concurrency, func(ctx context.Context, d *delivery) { handle(ctx, d) })
}

// ConsumeWakes delivers what can wake a run.
func (l *Log) ConsumeWakes(ctx context.Context, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return l.consume(ctx, l.wakes, concurrency, func(ctx context.Context, d *delivery) { handle(ctx, d) })
}

// consume has messages handled, each in a goroutine of its own, until ctx ends or
// the log is closed, then waits for all handlers. Which worker has which message
// is decided where the message comes up, not by who wakes first.
func (l *Log) consume(ctx context.Context, c *consumer, concurrency int, handle func(context.Context, *delivery)) error {
	handlers, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var handling sync.WaitGroup
	defer handling.Wait()
	w := &worker{size: max(concurrency, 1), live: func() bool { return handlers.Err() == nil }}
	w.begin = func(j *job) {
		d := &delivery{
			consumer:    c,
			entry:       j.message.entry,
			inbox:       j.message.kind == runlog.KindInbox,
			redelivered: j.count > 1,
			until:       time.Now().Add(l.hold()),
		}
		handling.Go(func() {
			handle(handlers, d)
			l.mu.Lock()
			defer l.mu.Unlock()
			c.freed(w)
		})
	}
	l.mu.Lock()
	c.join(w)
	l.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-l.closed:
	}
	l.mu.Lock()
	c.leave(w)
	l.mu.Unlock()
	err := unavailable("consume", errClosed)
	cancel(err)
	return ended(ctx, err)
}

// ended is the cause of the end of ctx, or err where it has not ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// ForgetDeliveries is what a crash of the server does: it does not know any more
// what was delivered, and delivers all that is not acknowledged as if for the
// first time. Those who hold a message may still acknowledge it.
func (l *Log) ForgetDeliveries() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.names() {
		l.executors[name].forget()
	}
	l.wakes.forget()
	l.timers.forget()
}

// AckFloor returns the sequence of the newest step to an executor up to which all
// are acknowledged, or erased; 0 when there is none.
func (l *Log) AckFloor(ctx context.Context, name runlog.Run, executor string) (uint64, error) {
	if err := l.enter(ctx, "acknowledged steps of "+executor); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	c := l.executors[executor]
	if c == nil {
		return 0, fmt.Errorf("consumer of %s: %w", executor, runlog.ErrNotFound)
	}
	return c.floor, nil
}
