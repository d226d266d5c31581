package sim

import (
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
