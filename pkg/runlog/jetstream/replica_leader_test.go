package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// lostAnswer checks that an append whose answer is lost is found by its writer, once.
func lostAnswer(r *replicas) {
	leader, follower := r.places()
	for _, at := range []*node{leader, follower} {
		n := &network{server: at.running()}
		l := r.open(r.T, r.account, n, 1500*time.Millisecond)
		rec := first(at.name())
		records := map[uint64]*harnessv1.Record{}
		var sequence uint64
		var lost atomic.Int64
		for v := range uint64(3) {
			lost.Store(0)
			n.loseReplies.Store(holding(anAck, 1, &lost))
			var err error
			sequence, err = l.Append(r.Context(), rec)
			r.must(err)
			if lost.Load() == 0 {
				r.Fatal("nothing was lost")
			}
			records[sequence] = rec
			r.whole(l, records, runOf(rec), sequence)
			rec = after(rec, sequence, v+2)
		}
		if l.counts.landed.Load() != 3 || l.counts.resent.Load() != 0 {
			r.Errorf("%d found stored, %d sent again", l.counts.landed.Load(), l.counts.resent.Load())
		}
	}
}

// group returns a node's state of a stream's raft group.
func (r *replicas) group(n *node, name string) server.RaftzGroup {
	all := n.running().Raftz(&server.RaftzOptions{AccountFilter: r.account, GroupFilter: name})
	return (*all)[r.account][name]
}

// lostLeader checks that the next leader stores a record that was in flight when its
// leader stepped down, once, and that its writer gets the result.
func lostLeader(r *replicas) {
	leader, follower := r.places()
	l := r.at(leader)
	rec, sequence := r.grown(l, "r")
	stream, err := l.js.Stream(r.Context(), "RUNS_0")
	r.must(err)
	name := stream.CachedInfo().Cluster.RaftGroup
	next := after(rec, sequence, 2)

	release := r.hold(leader)
	defer release()
	before := r.group(follower, name).PIndex
	type result struct {
		sequence uint64
		err      error
	}
	answer := make(chan result, 1)
	go func() {
		sequence, err := l.Append(r.Context(), next)
		answer <- result{sequence, err}
	}()
	r.await(r.T, "a follower that has the record", func() bool { return r.group(follower, name).PIndex > before })
	if len(answer) > 0 {
		r.Fatalf("answered before it was stored: %v", <-answer)
	}
	r.must(leader.running().JetStreamStepdownStream(r.account, "RUNS_0"))
	r.awaitLeader(r.T, r.account, "RUNS_0", leader)
	release()
	got := <-answer
	r.must(got.err)
	r.whole(l, map[uint64]*harnessv1.Record{sequence: rec, got.sequence: next}, runOf(rec), got.sequence)
	if l.counts.resent.Load() != 0 {
		r.Errorf("%d sent again", l.counts.resent.Load())
	}
}

// patience bounds how long the tests on a cluster wait for the bus.
const patience = time.Minute

// watched follows a run until a version and returns the fault of the received records, nil
// for none.
func watched(ctx context.Context, l *Log, run runlog.Run, contains, until uint64, begun func()) error {
	enough := errors.New("enough")
	var newest uint64
	err := runlog.Watcher{
		Contains: contains,
		Patience: patience,
		Handle: func(e runlog.Entry) error {
			if e.Header.Version != newest+1 {
				return fmt.Errorf("version %d after %d", e.Header.Version, newest)
			}
			if newest = e.Header.Version; newest == until {
				return enough
			}
			return nil
		},
		CaughtUp: func() error {
			begun()
			return nil
		},
	}.Watch(ctx, l, run)
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// oneWriter checks that one writer continues through changes of the leader, that
// watchers at all servers receive each version once, and that readers find each record
// as soon as it is stored.
func oneWriter(r *replicas) {
	const until = 400
	l := r.open(r.T, r.account, r.cluster, 0)
	rec, sequence := r.grown(l, "r")
	records := map[uint64]*harnessv1.Record{sequence: rec}
	var begun, watching sync.WaitGroup
	var readers []*Log
	for _, n := range r.nodes {
		reader := r.at(n)
		readers = append(readers, reader)
		begun.Add(1)
		watching.Go(func() {
			if err := watched(r.Context(), reader, runOf(rec), sequence, until, begun.Done); err != nil {
				r.Error(err)
			}
		})
	}
	begun.Wait()
	var counts unrest
	disturb(r.T, r.cluster, r.account, &counts, true)
	for v := uint64(2); v <= until; v++ {
		rec = after(rec, sequence, v)
		var err error
		sequence, err = l.Append(r.Context(), rec)
		r.must(err)
		records[sequence] = rec
		e, err := readers[v%3].Read(r.Context(), runOf(rec), sequence)
		r.must(err)
		if e.Header.Version != v {
			r.Fatalf("sequence %d holds version %d, expected %d", sequence, e.Header.Version, v)
		}
	}
	watching.Wait()
	var stale int64
	for _, reader := range readers {
		r.whole(reader, records, runOf(rec), sequence)
		stale += reader.counts.stale.Load()
	}
	r.Logf("%d leaders stepped down: %d appends not answered, %d found stored, %d sent again; %d stale answers", counts.streams.Load(),
		l.counts.unanswered.Load(), l.counts.landed.Load(), l.counts.resent.Load(), stale)
	if counts.streams.Load() < 5 {
		r.Errorf("only %d leaders stepped down", counts.streams.Load())
	}
}

// deliveriesContinue checks that deliveries continue soon after their consumer has lost
// its leader, and that none is lost.
func deliveriesContinue(r *replicas) {
	l := r.open(r.T, r.account, r.cluster, 0)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	delivered := make(chan runlog.Delivery, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- l.Consume(ctx, "turn", 4, func(_ context.Context, d runlog.Delivery) {
			if err := d.Ack(); err != nil {
				r.Error(err)
			}
			delivered <- d
		})
	}()
	rec, sequence := r.grown(l, "r")
	var longest time.Duration
	const rounds = 8
	changed := int64(0)
	for v := uint64(1); ; v++ {
		begun := time.Now()
		for d := (runlog.Delivery)(nil); d == nil || d.Entry().Sequence != sequence; {
			select {
			case d = <-delivered: // an earlier one may be repeated
			case err := <-ended:
				r.Fatal(err)
			}
		}
		longest = max(longest, time.Since(begun))
		if v > rounds {
			break
		}
		r.await(r.T, "a consumer that has a leader", func() bool {
			n := r.stepDownConsumer(r.account, "RUNS_0", "exec-turn")
			changed += n
			return n > 0
		})
		rec = after(rec, sequence, v+1)
		var err error
		sequence, err = l.Append(r.Context(), rec)
		r.must(err)
	}
	r.Logf("%d changes of the consumer's leader, the longest wait for a delivery was %s", changed, longest)
	if longest > 5*time.Second {
		r.Errorf("a delivery came after %s", longest)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		r.Fatal(err)
	}
}
