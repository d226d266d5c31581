package jetstream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// replicaPart is a test of what only a replicated stream does, on an account with its name.
type replicaPart struct {
	name string
	run  func(*replicas)
}

// TestReplicas tests the fence and reads on replicas.
func TestReplicas(t *testing.T) {
	t.Parallel()
	onReplicas(t, replicaPart{"fence", fenceStrings}, replicaPart{"in_flight", appendsInFlight}, replicaPart{"stale", staleReplica}, replicaPart{"stale_input", staleInput},
		replicaPart{"keyed_in_flight", keyedInFlight})
}

// TestSystemReplicas tests what happens when leaders change or answers are lost.
func TestSystemReplicas(t *testing.T) {
	t.Parallel()
	onReplicas(t, replicaPart{"writers", manyWriters}, replicaPart{"lost_answer", lostAnswer}, replicaPart{"lost_leader", lostLeader}, replicaPart{"one_writer", oneWriter},
		replicaPart{"deliveries", deliveriesContinue}, replicaPart{"erasure", lateErasure})
}

// onReplicas runs parts, which share a cluster and change its links, one after the other.
func onReplicas(t *testing.T, parts ...replicaPart) {
	t.Helper()
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

// at opens the log through one node, without a cache, so that this node's replica
// answers reads.
func (r *replicas) at(n *node) *Log {
	r.Helper()
	l := r.open(r.T, r.account, n.running(), 0)
	l.cache = newCache(1)
	return l
}

// places returns the leader of the records' stream and a node that leads no stream with
// data of the test.
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

// grown appends the first record of a run.
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
		if want.GetVersion() != uint64(i)+1 || want.GetWriter().GetNonce() != e.Record.GetWriter().GetNonce() {
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

// fenceStrings checks that, while a record is in flight, the server refuses another one
// with the same fence only if both spell the filter identically.
func fenceStrings(r *replicas) {
	leader, _ := r.places()
	l := r.at(leader)
	rec, sequence := r.grown(l, "r")
	publish := func(filter string, nonce uint64) jetstream.PubAckFuture {
		msg, err := l.fenced(context.Background(), runOf(rec), after(rec, sequence, nonce))
		r.must(err)
		if filter != "" {
			msg.Header.Set(jetstream.ExpectedLastSubjSeqSubjHeader, filter)
		}
		f, err := l.js.PublishMsgAsync(msg)
		r.must(err)
		return f
	}
	release := r.hold(leader) // it learns of no replica that has stored anything
	defer release()
	one := publish("", 2)
	other := publish("hm.run.0.default.r.log.*.>", 3)
	if strings.HasSuffix(runlog.LogFilter(0, runOf(rec)), ".*.>") {
		r.Fatal("the filters are the same")
	}
	alike := publish("", 4)
	if err := outcome(alike); apiCode(err) != codeWrongSequenceReplicated {
		r.Fatalf("a second record with the same fence: %v", err)
	}
	release()
	if err := outcome(one); err != nil {
		r.Fatal(err)
	}
	// This is why all fences are made by one function.
	if err := outcome(other); err != nil {
		r.Fatalf("a filter spelt otherwise is fenced too (%v): the rule of one constructor has lost its reason", err)
	}
}

// writers append one record each after the same one, through the logs in turn. It
// returns the winner's index and sequence. All others are fenced.
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
		r.Fatalf("no writer stored version %d", records[0].GetVersion())
	}
	return winner, sequences[winner]
}

// appendsInFlight checks that writers that are refused because of a record in flight
// get their result once it is stored.
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

// manyWriters checks that of writers at all servers exactly one stores each version.
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
		r.Fatal("no writer was refused for a record in flight")
	}
}
