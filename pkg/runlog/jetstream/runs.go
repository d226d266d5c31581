package jetstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// followAttempts bounds how often a follower is re-created.
const followAttempts = 5

// followIdle is how long the server keeps the consumer of a follower that has gone
// away.
const followIdle = 10 * time.Second

// followBeat is the interval at which the server of an idle follower reports. After two without a report the
// server has died, and the follower continues at another.
const followBeat = time.Second

// recheckEvery is the interval at which a follower that has not caught up checks that the
// message it waits for still exists.
const recheckEvery = time.Second

// Runs follows the steps that define the state of runs.
func (l *Log) Runs(ctx context.Context, caughtUp func(), handle func(runlog.Entry)) error {
	f := &follower{log: l, caughtUp: caughtUp, handle: handle, missing: l.partitions}
	defer f.stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	for _, h := range l.histories {
		lost := h.loss()
		go func() {
			select {
			case <-lost:
				cancel(fmt.Errorf("follow runs: %w", runlog.ErrLost))
			case <-ctx.Done():
			}
		}()
	}
	for p := range l.partitions {
		if err := f.follow(ctx, p, cancel); err != nil {
			return ended(ctx, unavailable("follow runs", err))
		}
	}
	look := time.NewTicker(recheckEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
			if f.recheck(ctx) {
				look.Stop()
			}
		}
	}
}

// follower follows the runs of all partitions.
type follower struct {
	log      *Log
	caughtUp func()
	handle   func(runlog.Entry)
	running  intake

	mu      sync.Mutex // one partition at a time
	parts   []*partProgress
	missing int
	over    bool // the client may still run a callback after it has reported its end
}

// partProgress is the position in one partition.
type partProgress struct {
	stream  string
	filters []string
	// stored is the newest message of the leader at the start, seen the newest received
	// one. The stored messages are complete once a message at or after stored has
	// arrived. Counting messages, or a message with none pending, proves nothing: the
	// replica that delivers may lag.
	stored, seen uint64
	through      bool
}

func (f *follower) stop() {
	f.running.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

func (f *follower) follow(ctx context.Context, p int, cancel context.CancelCauseFunc) error {
	at := "hm.run." + fmt.Sprint(p) + ".*.*.log.step."
	part := &partProgress{stream: runsStream(p), filters: []string{at + workflow.Repair, at + runlog.Park, at + runlog.End}}
	var err error
	if part.stored, err = f.log.newest(ctx, part.stream, part.filters); err != nil {
		return err
	}
	consumer, err := asked(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return f.log.js.OrderedConsumer(ctx, part.stream, jetstream.OrderedConsumerConfig{
			FilterSubjects: part.filters,
			DeliverPolicy:  jetstream.DeliverLastPerSubjectPolicy,
			// After some seconds the caller gets an error instead of an old list.
			MaxResetAttempts: followAttempts,
			// The consumer outlives the follower by this time: it is not deleted.
			InactiveThreshold: followIdle,
		})
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.parts = append(f.parts, part)
	f.arrive(part)
	f.mu.Unlock()
	c, err := consumer.Consume(func(m jetstream.Msg) { f.take(ctx, part, m) }, jetstream.PullHeartbeat(followBeat))
	if err != nil {
		return err
	}
	f.running.add(c, func() { cancel(fmt.Errorf("follow runs: %w: deliveries have stopped", runlog.ErrUnavailable)) })
	return nil
}

func (f *follower) take(ctx context.Context, part *partProgress, m jetstream.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || ctx.Err() != nil {
		return
	}
	meta, err := m.Metadata()
	if err != nil {
		return
	}
	if address, err := runlog.ParseSubject(m.Subject()); err == nil {
		// The steps that were stored at the start are of runs that may be parked for
		// months. They would fill the cache.
		read := f.log.glance
		if f.log.certain(address.Partition, meta.Sequence.Stream) {
			f.log.saw(address.Partition, meta.Sequence.Stream, m.Subject(), m.Data())
			if part.through {
				read = f.log.entry
			}
		}
		f.handle(read(address, meta.Sequence.Stream, m.Headers(), m.Data()))
	}
	part.seen = meta.Sequence.Stream
	f.arrive(part)
}

// arrive records that the stored messages of a partition are complete, if they are.
func (f *follower) arrive(part *partProgress) {
	if part.through || part.seen < part.stored {
		return
	}
	part.through = true
	if f.missing--; f.missing == 0 && f.caughtUp != nil {
		f.caughtUp()
	}
}

// recheck updates the message that a partition waits for, which may have been erased.
// It reports whether all partitions are complete.
func (f *follower) recheck(ctx context.Context) bool {
	f.mu.Lock()
	parts := f.parts
	f.mu.Unlock()
	all := true
	for _, part := range parts {
		f.mu.Lock()
		through := part.through
		f.mu.Unlock()
		if through {
			continue
		}
		all = false
		newest, err := f.log.newest(ctx, part.stream, part.filters)
		if err != nil {
			continue // retried after the next interval
		}
		f.mu.Lock()
		part.stored = min(part.stored, newest)
		f.arrive(part)
		f.mu.Unlock()
	}
	return all
}
