package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestReplicas provokes, one by one, what only a replicated stream does. The
// parts share a cluster and change its links, so they run one after the other.
func TestReplicas(t *testing.T) {
	t.Parallel()
	parts := []struct {
		name string
		run  func(*replicas)
	}{
		{"fence", fenceStrings}, {"in_flight", appendsInFlight}, {"writers", manyWriters}, {"stale", staleReplica}, {"stale_input", staleInput},
		{"lost_answer", lostAnswer}, {"lost_leader", lostLeader}, {"one_writer", oneWriter}, {"deliveries", deliveriesGoOn},
	}
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	c := startCluster(t, names...)
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			if err := c.provision(p.name, Layout{}); err != nil {
				t.Fatal(err)
			}
			p.run(&replicas{T: t, cluster: c, account: p.name})
		})
	}
}

// replicas is an account on a cluster.
type replicas struct {
	*testing.T
	*cluster
	account string
}

func (r *replicas) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// at opens the log through one node, and without memory, so that this node's
// replica answers what is read.
func (r *replicas) at(n *node) *Log {
	r.Helper()
	l := r.open(r.T, r.account, n.running(), 0)
	l.cache = newCache(1)
	return l
}

// places are the leader of the records' stream and a node that leads no stream of
// what is written here.
func (r *replicas) places() (leader, follower *node) {
	r.Helper()
	leader = r.awaitLeader(r.T, r.account, "RUNS_0", nil)
	blobs := r.awaitLeader(r.T, r.account, "BLOBS_0", nil)
	for _, n := range r.nodes {
		if n != leader && n != blobs {
			follower = n
		}
	}
	return leader, follower
}

// grown is a run with one record.
func (r *replicas) grown(l *Log, id string) (*harnessv1.Record, uint64) {
	r.Helper()
	rec := first(id)
	sequence, err := l.Append(r.Context(), rec)
	r.must(err)
	return rec, sequence
}

// whole fails unless the log of a run is exactly the records, in their order.
func (r *replicas) whole(l *Log, records map[uint64]*harnessv1.Record, run runlog.Run, newest uint64) {
	r.Helper()
	view, err := l.View(r.Context(), run, newest)
	r.must(err)
	entries, err := runlog.Back(r.Context(), l, view.Newest, 0)
	r.must(err)
	if len(entries) != len(records) {
		r.Fatalf("%d records, want %d", len(entries), len(records))
	}
	for i, e := range entries {
		want := records[e.Sequence]
		if want.GetVersion() != uint64(i)+1 || want.GetWriter().GetNonce() != e.Record.GetWriter().GetNonce() { //nolint:gosec // small and positive
			r.Fatalf("sequence %d holds version %d of writer %d, want version %d of writer %d", e.Sequence,
				e.Record.GetVersion(), e.Record.GetWriter().GetNonce(), want.GetVersion(), want.GetWriter().GetNonce())
		}
	}
}

// outcome waits for the answer to a publish.
func outcome(f jetstream.PubAckFuture) error {
	select {
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		return err
	}
}

// While a record is in flight the server refuses another one behind the same
// fence only when both spell the filter alike.
func fenceStrings(r *replicas) {
	leader, _ := r.places()
	l := r.at(leader)
	rec, sequence := r.grown(l, "r")
	publish := func(filter string, nonce uint64) jetstream.PubAckFuture {
		msg, err := l.fenced(runOf(rec), after(rec, sequence, nonce))
		r.must(err)
		if filter != "" {
			msg.Header.Set(jetstream.ExpectedLastSubjSeqSubjHeader, filter)
		}
		f, err := l.js.PublishMsgAsync(msg)
		r.must(err)
		return f
	}
	release := r.hold(leader) // it hears of no replica that has stored anything
	defer release()
	one := publish("", 2)
	other := publish("hm.run.0.default.r.log.*.>", 3)
	if strings.HasSuffix(runlog.LogFilter(0, runOf(rec)), ".*.>") {
		r.Fatal("the filters are the same")
	}
	alike := publish("", 4)
	if err := outcome(alike); apiCode(err) != codeWrongSequenceReplicated {
		r.Fatalf("a second record behind the same fence: %v", err)
	}
	release()
	if err := outcome(one); err != nil {
		r.Fatal(err)
	}
	// Not what anyone wants, but why there is one constructor of fences.
	if err := outcome(other); err != nil {
		r.Fatalf("a filter spelt otherwise is fenced too (%v): the rule of one constructor has lost its reason", err)
	}
}

// writers append a record each behind the same one, through logs by turns, and
// return the winner's index and sequence. All others are fenced.
func (r *replicas) writers(logs []*Log, records []*harnessv1.Record, meanwhile func()) (int, uint64) {
	r.Helper()
	sequences, errs := make([]uint64, len(records)), make([]error, len(records))
	var writing sync.WaitGroup
	for i, rec := range records {
		writing.Go(func() { sequences[i], errs[i] = logs[i%len(logs)].Append(r.Context(), rec) })
	}
	meanwhile()
	writing.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			r.Fatalf("version %d was stored at %d and at %d", records[i].GetVersion(), sequences[winner], sequences[i])
		case err == nil:
			winner = i
		case !errors.Is(err, runlog.ErrFenced):
			r.Fatal(err)
		}
	}
	if winner < 0 {
		r.Fatalf("nobody stored version %d", records[0].GetVersion())
	}
	return winner, sequences[winner]
}

// Writers that are refused because of a record in flight do not know yet who was
// first. They are told when it is stored.
func appendsInFlight(r *replicas) {
	leader, _ := r.places()
	l := r.at(leader)
	rec, sequence := r.grown(l, "r")
	release := r.hold(leader)
	defer release()
	records := []*harnessv1.Record{after(rec, sequence, 2), after(rec, sequence, 3), after(rec, sequence, 4)}
	winner, newest := r.writers([]*Log{l}, records, func() {
		r.await(r.T, "writers that were refused twice", func() bool { return l.counts.resent.Load() >= 4 })
		release()
	})
	if l.counts.fencedReplicated.Load() < 4 {
		r.Fatalf("%d refusals for a record in flight", l.counts.fencedReplicated.Load())
	}
	r.whole(l, map[uint64]*harnessv1.Record{sequence: rec, newest: records[winner]}, runOf(rec), newest)
}

// Writers at all servers race for every version: one wins, the others hear of it.
func manyWriters(r *replicas) {
	var logs []*Log
	for _, n := range r.nodes {
		logs = append(logs, r.at(n))
	}
	rec, sequence := r.grown(logs[0], "r")
	records := map[uint64]*harnessv1.Record{sequence: rec}
	for round := range uint64(100) {
		var racing []*harnessv1.Record
		for w := range uint64(9) {
			racing = append(racing, after(rec, sequence, 10*(round+1)+w))
		}
		var winner int
		winner, sequence = r.writers(logs, racing, func() {})
		rec = racing[winner]
		records[sequence] = rec
	}
	var inFlight, fenced int64
	for _, l := range logs {
		inFlight += l.counts.fencedReplicated.Load()
		fenced += l.counts.fenced.Load()
		r.whole(l, records, runOf(rec), sequence)
	}
	r.Logf("%d refused for a record in flight, %d for a stored one", inFlight, fenced)
	if inFlight == 0 {
		r.Fatal("nobody was refused for a record in flight")
	}
}

// behind opens the log at a follower and holds it back, once it answers direct
// gets: a new replica does not do that at once.
func (r *replicas) behind() (l *Log, release func()) {
	r.Helper()
	_, follower := r.places()
	l = r.at(follower)
	rec, sequence := r.grown(l, "probe")
	r.await(r.T, "a replica that answers and lags", func() bool {
		release = r.hold(follower)
		rec = after(rec, sequence, sequence)
		var err error
		sequence, err = l.Append(r.Context(), rec)
		r.must(err)
		request := fmt.Appendf(nil, `{"seq":%d}`, sequence)
		for range 20 {
			if _, err := l.get(r.Context(), directSubject("RUNS_0"), request); errors.Is(err, errMissing) {
				return true
			}
		}
		release()
		return false
	})
	return l, release
}

// eventually repeats a read that any replica may answer until the one that lags has.
func (r *replicas) eventually(what string, read func() bool) {
	r.Helper()
	for range 1000 {
		if read() {
			return
		}
	}
	r.Fatalf("in 1000 reads there was no %s", what)
}

// A replica that lags answers too. What must contain a message is asked for again.
func staleReplica(r *replicas) {
	l, release := r.behind()
	defer release()
	rec := first("r")
	run := runOf(rec)
	var before, sequence uint64
	for v := uint64(1); v <= 3; v++ {
		before = sequence
		var err error
		sequence, err = l.Append(r.Context(), rec)
		r.must(err)
		rec = after(rec, sequence, v+1)
	}
	data := []byte("a blob")
	ref, err := l.PutBlob(r.Context(), run, data)
	r.must(err)

	request := fmt.Appendf(nil, `{"seq":%d}`, before)
	r.eventually("direct get without an answer", func() bool {
		_, err := l.get(r.Context(), directSubject("RUNS_0"), request)
		return errors.Is(err, errMissing)
	})
	r.eventually("view that does not know the run", func() bool {
		_, err := l.View(r.Context(), run, 0)
		return errors.Is(err, runlog.ErrNotFound)
	})

	for range 100 {
		view, err := l.View(r.Context(), run, sequence)
		r.must(err)
		if view.Newest.Sequence != sequence {
			r.Fatalf("a view that contains %d ends at %d", sequence, view.Newest.Sequence)
		}
		e, err := l.Read(r.Context(), run, sequence)
		r.must(err)
		if e.Header.Version != 3 {
			r.Fatalf("version %d at %d", e.Header.Version, sequence)
		}
	}
	got, err := l.Blob(r.Context(), run, ref.GetDigest())
	if err != nil || string(got) != string(data) {
		r.Fatalf("blob %q, %v", got, err)
	}
	r.Logf("%d stale answers to 200 reads", l.counts.stale.Load())
	if l.counts.stale.Load() == 0 {
		r.Error("no read met a stale answer")
	}
}

// An input that is sent by one who does not know the newest is stored behind it,
// once.
func staleInput(r *replicas) {
	l, release := r.behind()
	defer release()
	run := runlog.Run{Namespace: "default", ID: "r"}
	ids := make([]string, 20)
	var newest uint64
	for i := range ids {
		ids[i] = fmt.Sprint(i)
		sequence, existed, err := l.AppendInbox(r.Context(), run, &harnessv1.InboxItem{Id: ids[i]}, 0)
		r.must(err)
		if existed || sequence <= newest {
			r.Fatalf("item %d at %d, existed is %v", i, sequence, existed)
		}
		newest = sequence
		r.eventually("inbox that seems empty", func() bool {
			last, err := l.LastInbox(r.Context(), run)
			r.must(err)
			return last == 0
		})
		again, existed, err := l.AppendInbox(r.Context(), run, &harnessv1.InboxItem{Id: ids[i]}, 0)
		r.must(err)
		if !existed || again != sequence {
			r.Fatalf("item %d is at %d and at %d", i, sequence, again)
		}
	}
	items, err := l.Inbox(r.Context(), run, 0, newest)
	r.must(err)
	if len(items) != len(ids) {
		r.Fatalf("%d items, want %d", len(items), len(ids))
	}
	for i, item := range items {
		if item.GetId() != ids[i] {
			r.Errorf("item %d is %s", i, item.GetId())
		}
	}
}

// An append whose answer is lost on the way is found by its writer, once.
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

// group is a stream's raft group as a node knows it.
func (r *replicas) group(n *node, name string) server.RaftzGroup {
	all := n.running().Raftz(&server.RaftzOptions{AccountFilter: r.account, GroupFilter: name})
	return (*all)[r.account][name]
}

// A leader that steps down with a record in flight leaves it to the next one, who
// stores it. It is stored once and its writer hears of it.
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
	r.must(leader.running().JetStreamStepdownStream(r.account, "RUNS_0"))
	r.awaitLeader(r.T, r.account, "RUNS_0", leader)
	if len(answer) > 0 {
		r.Fatalf("answered before it was stored: %v", <-answer)
	}
	release()
	got := <-answer
	r.must(got.err)
	r.whole(l, map[uint64]*harnessv1.Record{sequence: rec, got.sequence: next}, runOf(rec), got.sequence)
	if l.counts.resent.Load() != 0 {
		r.Errorf("%d sent again", l.counts.resent.Load())
	}
}

// patience is how long the tests on a cluster bear a bus that does not answer.
const patience = time.Minute

// watched follows a run until a version and says what is wrong with what came.
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

// One writer goes on through changes of the leader; watchers at all servers see
// each version once, and readers find each record as soon as it is stored.
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
			r.Fatalf("sequence %d holds version %d, want %d", sequence, e.Header.Version, v)
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

// Deliveries go on soon after their consumer has lost its leader, and none is lost.
func deliveriesGoOn(r *replicas) {
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
			case d = <-delivered: // an earlier one may come again
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
