// Package memory keeps the run log in the memory of one process, without NATS.
//
// It is a whole implementation of runlog.Log, held to the same suite as the one
// on JetStream, for two uses: tests that need a log and no bus, and simulations
// that run production code under a fake clock. For these it keeps some rules:
//
//   - Its goroutines wait on channels, timers and contexts only, and a mutex is
//     held to compute, never to wait or to call out. In a testing/synctest bubble
//     whatever waits here is durably blocked. The log is made inside the bubble.
//   - Time comes from package time alone, and what falls due at one moment is
//     done in the order in which it was planned.
//   - Nothing that can be observed depends on the order of a map or on a choice
//     between channels: the same calls in the same order have the same effects.
//     Calls made at the same time are in the order in which they come.
//   - A goroutine belongs to a call or a subscription and ends with it; Close
//     ends all but the handlers of Consume, which their callers wait for.
//
// Deliveries are those of a NATS server with this program's own client before it:
// a consumer is durable and shared by all who consume, acknowledgements count by
// sequence whoever sends them, a hold that ran out can neither be renewed nor put
// back, and a crash of the server (ForgetDeliveries) forgets who had what. What is
// put back comes again after 5 ms at the earliest.
//
// There is one partition: all messages share one sequence. What is not modelled
// is what a network does: replicas that lag, answers that are lost, appends in
// flight, a feed that drops records, a bus that is away. A decorator of
// runlog.Log does that. Nothing is written to disk.
package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Config says what a log is like.
type Config struct {
	// AckWait is the time after which an unacknowledged delivery is repeated.
	// Default: that of runlog.DefaultTakeover.
	AckWait time.Duration
	// Executors that have a durable consumer. Default: repair, compaction, turn
	// and stopdecision.
	Executors []string
}

// patience bounds the wait for a message that the log does not have yet, where
// the caller's context has no earlier end.
const patience = 5 * time.Second

// Log is a runlog.Log in memory.
type Log struct {
	ackWait time.Duration
	closed  chan struct{}

	mu   sync.Mutex
	over bool // closed
	// messages are the records and inbox items by sequence, from 1; nil where one
	// was erased.
	messages []*message
	runs     map[runlog.Run]*run
	grown    chan struct{} // closed with the next message; nil while nobody waits

	executors     map[string]*consumer
	wakes, timers *consumer
	fired         uint64 // the sequence of the timer that fired last

	clock     clock
	feeds     feeds
	followers []*follower
	answerers map[runlog.Run][]*answerer
}

var _ runlog.Log = (*Log)(nil)

// New makes an empty log. It panics when an executor's name is none.
func New(cfg Config) *Log {
	if cfg.AckWait <= 0 {
		cfg.AckWait = runlog.AckWaitOf(runlog.DefaultTakeover)
	}
	if cfg.Executors == nil {
		cfg.Executors = []string{firstExecutor, "compaction", "turn", "stopdecision"}
	}
	l := &Log{
		ackWait:   cfg.AckWait,
		closed:    make(chan struct{}),
		runs:      map[runlog.Run]*run{},
		executors: map[string]*consumer{},
		feeds:     newFeeds(),
		answerers: map[runlog.Run][]*answerer{},
	}
	l.wakes, l.timers = newConsumer(l), newConsumer(l)
	if err := l.Provision(cfg.Executors...); err != nil {
		panic(err)
	}
	return l
}

// Provision gives executors a durable consumer; those that have one keep it. A
// new one begins with the first step that the log holds for it.
func (l *Log) Provision(executors ...string) error {
	for _, name := range executors {
		if !runlog.Name.MatchString(name) || runlog.IsRest(name) {
			return fmt.Errorf("executor %q: a name matches %s and is not park or end", name, runlog.Name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range executors {
		if l.executors[name] != nil {
			continue
		}
		c := newConsumer(l)
		for _, m := range l.messages {
			if m != nil && m.kind == runlog.KindStep && m.to == name {
				c.add(&job{message: m})
			}
		}
		l.executors[name] = c
	}
	return nil
}

// Executors lists the executors that have a durable consumer, by name.
func (l *Log) Executors(ctx context.Context) ([]string, error) {
	if err := l.enter(ctx, "list executors"); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	return l.names(), nil
}

func (l *Log) names() []string {
	names := make([]string, 0, len(l.executors))
	for name := range l.executors {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// AckWait is the time after which an unacknowledged delivery is repeated.
func (l *Log) AckWait() time.Duration { return l.ackWait }

// Close ends the calls that consume and follow with ErrUnavailable, stops all
// subscriptions and returns when their handlers have. Every later call answers
// ErrUnavailable.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.over {
		l.over = true
		close(l.closed)
		l.announceGrowth()
		l.clock.stop()
		l.feeds.stop()
	}
	l.mu.Unlock()
	l.clock.ticking.Wait()
	l.feeds.running.Wait()
}

var errClosed = errors.New("the log is closed")

// unavailable wraps the reason for which a call has no answer.
func unavailable(op string, err error) error {
	return fmt.Errorf("%s: %w: %w", op, runlog.ErrUnavailable, err)
}

// enter locks the log, unless it is closed or ctx has ended.
func (l *Log) enter(ctx context.Context, op string) error {
	if ctx.Err() != nil {
		return unavailable(op, context.Cause(ctx))
	}
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return unavailable(op, errClosed)
	}
	return nil
}

// until calls try with the log locked, at once and whenever a message was stored,
// until it is done. It ends with ErrUnavailable when ctx does, after patience, and
// when the log is closed.
func (l *Log) until(ctx context.Context, op string, try func() (done bool, err error)) error {
	done, grown, err := l.attempt(ctx, op, try)
	if done {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
		case <-grown:
		}
		done, grown, err = l.attempt(ctx, op, try)
		if done {
			return err
		}
	}
}

func (l *Log) attempt(ctx context.Context, op string, try func() (bool, error)) (done bool, grown <-chan struct{}, err error) {
	if err := l.enter(ctx, op); err != nil {
		return true, nil, err
	}
	defer l.mu.Unlock()
	if done, err := try(); done {
		return true, nil, err
	}
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return false, l.grown, nil
}

// announceGrowth wakes those who wait for a message.
func (l *Log) announceGrowth() {
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}
