package sim

import (
	"context"
	"errors"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestLeftoversOfEarlierRuns checks that what a process that died has left of an earlier
// run does not take a key, and that it does not count as the run's.
func TestLeftoversOfEarlierRuns(t *testing.T) {
	s, run := newStore(), runlog.Run{Namespace: "default", ID: "r"}
	job := func(first uint64) *harnessv1.Job { return &harnessv1.Job{Key: "k", FirstSequence: first} }
	old := s.createJob(run, job(3))
	if old == nil || !s.putBlobAs(run, "k", keyedBlob{3, []byte("old")}) {
		t.Fatal("the first write was refused")
	}
	for _, first := range []uint64{3, 2} {
		if s.createJob(run, job(first)) != nil || s.putBlobAs(run, "k", keyedBlob{first, nil}) {
			t.Errorf("a second write for the run at %d was accepted", first)
		}
	}
	made := s.createJob(run, job(5))
	if made == nil || !old.gone || !s.putBlobAs(run, "k", keyedBlob{5, []byte("new")}) {
		t.Fatal("what an earlier run has left took the key")
	}
	s.removeJob(run, "k", 3, 3)
	s.removeBlobAs(run, "k", 3, 3)
	s.eraseKeyed(run, 4)
	if l := s.of(run); made.gone || len(l.Jobs()) != 1 || string(l.BlobAs("k")) != "new" {
		t.Error("a writer or an erasure of an earlier run deleted them")
	}
	s.eraseKeyed(run, 5)
	if l := s.of(run); !made.gone || len(l.Jobs()) != 0 || l.BlobAs("k") != nil {
		t.Error("an erasure left them")
	}
}

// TestCompleted checks when a job may be acknowledged.
func TestCompleted(t *testing.T) {
	const first = 3
	result := func(of uint64) map[string]keyedBlob { return map[string]keyedBlob{"k": {first: of}} }
	records := func(at uint64) []*message { return []*message{{sequence: at}, {sequence: 9}} }
	for name, c := range map[string]struct {
		log  Log
		gone bool
		want bool
	}{
		"no result":                {Log{records: records(first)}, false, false},
		"a result":                 {Log{records: records(first), keyed: result(first)}, false, true},
		"a result of another run":  {Log{records: records(first), keyed: result(first - 1)}, false, false},
		"a deleted job":            {Log{records: records(first)}, true, true},
		"a deleted run":            {Log{}, false, true},
		"a deleted first record":   {Log{records: records(5)}, false, true},
		"a result of another key":  {Log{records: records(first), keyed: map[string]keyedBlob{"l": {first: first}}}, false, false},
		"a result, and no records": {Log{keyed: result(first)}, false, true},
	} {
		m := &message{log: &c.log, gone: c.gone, job: &harnessv1.Job{Key: "k", FirstSequence: first}}
		if got := m.completed(); got != c.want {
			t.Errorf("%s: completed is %v", name, got)
		}
	}
}

// TestCallerLeavesDuringWrite checks that a write whose caller leaves while the run is
// erased leaves nothing.
func TestCallerLeavesDuringWrite(t *testing.T) {
	WithLog(t, Config{}, func(t *testing.T, log runlog.Log) {
		h, run := log.(*handle), runlog.Run{Namespace: "default", ID: "r"}
		sequence, err := log.Append(t.Context(), &harnessv1.Record{
			Namespace: run.Namespace, RunId: run.ID, Version: 1, Schema: runlog.Schema, Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: runlog.End}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		removed := false
		_, err = h.putOnce(ctx, once{
			run: run, first: sequence, kind: onBlobAs, key: "k",
			store: func() bool {
				h.p.world.store.erase(run, 0, runlog.Everything, -1)
				leave()
				return true
			},
			remove: func() { removed = true },
		})
		if !errors.Is(err, runlog.ErrNotFound) || !removed {
			t.Errorf("got %v, removed is %v", err, removed)
		}
	})
}
