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

// followAttempts is how often a follower is made anew before it gives up.
const followAttempts = 5

// followIdle is how long the server keeps a follower's consumer that nobody reads.
const followIdle = 10 * time.Second

// lookAgain is how often a follower that has not caught up looks whether what it
// waits for is still there.
const lookAgain = time.Second

// Runs follows the steps that say how runs stand.
func (l *Log) Runs(ctx context.Context, caughtUp func(), handle func(runlog.Entry)) error {
	f := &follower{log: l, caughtUp: caughtUp, handle: handle, behind: l.partitions}
	defer f.stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	for p := range l.partitions {
		if err := f.follow(ctx, p, cancel); err != nil {
			return ended(ctx, unavailable("follow runs", err))
		}
	}
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
			if f.lookAgain(ctx) {
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

	mu     sync.Mutex // one partition at a time
	parts  []*followed
	behind int
	over   bool // the client may still be in a callback when it says that it has stopped
}

// followed is how far the steps of one partition are.
type followed struct {
	stream  string
	filters []string
	// stored is the newest message that the leader had, seen the newest that came.
	// What was stored is through at that message or at a later one. Messages are not
	// counted, and "none behind this one" proves nothing: the replica that delivers
	// may be behind the leader.
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
	part := &followed{stream: runsStream(p), filters: []string{at + workflow.Repair, at + runlog.Park, at + runlog.End}}
	var err error
	if part.stored, err = f.log.newest(ctx, part.stream, part.filters); err != nil {
		return err
	}
	consumer, err := asked(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return f.log.js.OrderedConsumer(ctx, part.stream, jetstream.OrderedConsumerConfig{
			FilterSubjects: part.filters,
			DeliverPolicy:  jetstream.DeliverLastPerSubjectPolicy,
			// After some seconds the caller is told, and not left with an old list.
			MaxResetAttempts: followAttempts,
			// It outlives the follower by no more than that: nobody deletes it.
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
	c, err := consumer.Consume(func(m jetstream.Msg) { f.take(ctx, part, m) })
	if err != nil {
		return err
	}
	f.running.add(c, func() { cancel(fmt.Errorf("follow runs: %w: deliveries have stopped", runlog.ErrUnavailable)) })
	return nil
}

func (f *follower) take(ctx context.Context, part *followed, m jetstream.Msg) {
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
		// What was stored at the start are the steps of runs that may rest for months:
		// they would fill the cache, and a list of them is not worth its memory.
		read := f.log.glance
		if part.through {
			read = f.log.entry
		}
		f.handle(read(address, meta.Sequence.Stream, m.Headers(), m.Data()))
	}
	part.seen = meta.Sequence.Stream
	f.arrive(part)
}

// arrive notes that what was stored of a partition is through, where it is.
func (f *follower) arrive(part *followed) {
	if part.through || part.seen < part.stored {
		return
	}
	part.through = true
	if f.behind--; f.behind == 0 && f.caughtUp != nil {
		f.caughtUp()
	}
}

// lookAgain looks where a partition that is behind has to get to: the message that
// it waits for may have been erased meanwhile. It says whether all are through.
func (f *follower) lookAgain(ctx context.Context) bool {
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
			continue // the next look may be luckier
		}
		f.mu.Lock()
		part.stored = min(part.stored, newest)
		f.arrive(part)
		f.mu.Unlock()
	}
	return all
}
