package jetstream

import (
	"bytes"
	"errors"
	"regexp"
	"sync/atomic"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// exactly matches a direct get of a record by its sequence.
var exactly = regexp.MustCompile(`DIRECT\.GET\.RUNS_0 [^{]*\{"seq":([0-9]+)\}`)

// lateErasure checks that an erasure whose reads come from replicas without the run
// deletes all of it, and that a reader learns immediately that a record from the middle
// of the stream is gone.
func lateErasure(r *replicas) {
	_, follower := r.places()
	n := &network{server: follower.running()}
	l := r.open(r.T, r.account, n, 0)
	run, sequences := full(r.T, l, "r")
	keep := sequences[4]
	if keep > 8 {
		r.Fatalf("the run ends at %d, expected a sequence that no record has", keep)
	}
	r.must(l.delete(r.Context(), "RUNS_0", 9)) // the job
	var missed atomic.Int64
	asked := map[string]int{} // only one connection writes
	late := func(p []byte) bool {
		for _, at := range exactly.FindAllSubmatchIndex(p, -1) {
			sequence := p[at[2]:at[3]]
			if asked[string(sequence)]++; asked[string(sequence)] <= 2 {
				copy(sequence, bytes.Repeat([]byte("9"), len(sequence)))
				missed.Add(1)
			}
		}
		return false
	}
	n.loseRequests.Store(&late)
	for range 2 {
		r.must(l.Erase(r.Context(), run, keep, runlog.Everything))
		if left := stored(r.T, l.js, run); len(left) != 1 {
			r.Fatalf("there are %v", left)
		}
	}
	n.loseRequests.Store(nil)
	if missed.Load() < 2*8 {
		r.Errorf("only %d reads reached a replica that lags", missed.Load())
	}
	gone := func(sequence uint64) {
		r.Helper()
		var err error
		for err == nil { // this replica may still have it
			_, err = l.Read(r.Context(), run, sequence)
		}
		if !errors.Is(err, runlog.ErrNotFound) {
			r.Fatal(err)
		}
	}
	for _, sequence := range sequences[:4] {
		gone(sequence)
	}
	e, err := l.Read(r.Context(), run, keep)
	r.must(err)
	if e.Header.Version != 5 {
		r.Fatalf("version %d was kept", e.Header.Version)
	}
	r.must(l.Erase(r.Context(), run, 0, runlog.Everything))
	if left := stored(r.T, l.js, run); len(left) != 0 {
		r.Fatalf("there are %v", left)
	}
	gone(keep) // the last message of the stream
}
