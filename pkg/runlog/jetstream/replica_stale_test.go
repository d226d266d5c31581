package jetstream

import (
	"errors"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// lagging opens the log at a follower and delays its replication once it answers direct
// gets: a new replica does not do that immediately. A follower that is delayed for
// seconds calls for an election.
func (r *replicas) lagging(probe string) (l *Log, release func()) {
	r.Helper()
	_, follower := r.places()
	l = r.at(follower)
	rec, sequence := r.grown(l, probe)
	r.await(r.T, "a replica that answers and lags", func() bool {
		release = r.hold(follower)
		r.Cleanup(release)
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

// eventually repeats a read that any replica may answer until the one that lags has
// answered.
func (r *replicas) eventually(what string, read func() bool) {
	r.Helper()
	if !r.happens(read) {
		r.Fatalf("in 1000 reads there was no %s", what)
	}
}

// happens is eventually for a replica that may have caught up: on a busy machine the servers
// elect another leader, which sends it everything.
func (r *replicas) happens(read func() bool) bool {
	for range 1000 {
		if read() {
			return true
		}
	}
	return false
}

// staleReplica checks that a read with contains is repeated if a replica that lags
// answers.
func staleReplica(r *replicas) {
	l, _ := r.lagging("probe")
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

	l.cache = newCache(1) // written records are read from the replicas
	for range 100 {
		view, err := l.View(r.Context(), run, sequence)
		r.must(err)
		if view.Newest.Sequence != sequence {
			r.Fatalf("a view that contains %d ends at %d", sequence, view.Newest.Sequence)
		}
		newer, err := l.Newer(r.Context(), run, sequence)
		r.must(err)
		if newer {
			r.Fatalf("there is a newer message than the newest, %d", sequence)
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
	r.Logf("%d stale answers to 300 reads", l.counts.stale.Load())
	if l.counts.stale.Load() == 0 {
		r.Error("no read met a stale answer")
	}
}

// staleInput checks that an input of a sender that does not know the newest item is
// stored after it, once.
func staleInput(r *replicas) {
	run := runlog.Run{Namespace: "default", ID: "r"}
	var sequences []uint64
	for i, stale := 0, 0; stale < 4; i++ {
		if i == 20 {
			r.Fatalf("in %d tries, %d replicas lagged behind their item", i, stale)
		}
		l, release := r.lagging(fmt.Sprint("probe", i))
		newest := uint64(0)
		if i > 0 {
			newest = sequences[i-1]
		}
		sequence, existed, err := l.AppendInbox(r.Context(), run, &harnessv1.InboxItem{Id: fmt.Sprint(i)}, newest)
		r.must(err)
		if existed || sequence <= newest {
			r.Fatalf("item %d at %d after %d, existed is %v", i, sequence, newest, existed)
		}
		if r.happens(func() bool {
			last, err := l.LastInbox(r.Context(), run)
			r.must(err)
			return last < sequence
		}) {
			stale++
		}
		for range 10 {
			again, existed, err := l.AppendInbox(r.Context(), run, &harnessv1.InboxItem{Id: fmt.Sprint(i)}, newest)
			r.must(err)
			if !existed || again != sequence {
				r.Fatalf("item %d is at %d and at %d", i, sequence, again)
			}
		}
		release()
		sequences = append(sequences, sequence)
	}
	l := r.open(r.T, r.account, r.cluster, 0)
	items, err := l.Inbox(r.Context(), run, 0, sequences[len(sequences)-1])
	r.must(err)
	if len(items) != len(sequences) {
		r.Fatalf("%d items, want %d", len(items), len(sequences))
	}
	for i, item := range items {
		if item.GetId() != fmt.Sprint(i) || item.GetSequence() != sequences[i] {
			r.Errorf("item %d is %s at %d", i, item.GetId(), item.GetSequence())
		}
	}
}
