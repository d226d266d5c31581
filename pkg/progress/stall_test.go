package progress_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// TestFingerprintFollowsNewStatesOnly: a status that an item or an output had before is no
// progress, in whatever combination it comes again.
func TestFingerprintFollowsNewStatesOnly(t *testing.T) {
	p := &harnessv1.ProgressTracker{}
	seen := map[uint64]bool{}
	for i, c := range []struct {
		items, outputs string
		outcomes       uint32
		progress       bool
	}{
		{"", "", 0, true},
		{"", "", 0, false},
		{"\x01\x01", "", 0, true},
		{"\x02\x01", "", 0, true},
		{"\x01\x01", "", 0, false}, // back
		{"\x02\x01", "", 0, false}, // and forth
		{"\x01\x02", "", 0, true},
		{"\x02\x02", "", 0, false}, // a combination that is new
		{"\x02\x02", "\x01\x01", 0, true},
		{"\x02\x02", "\x02\x01", 0, true},
		{"\x02\x02", "\x01\x01", 0, false},
		{"\x02\x02", "\x01\x02", 0, true},
		{"\x02\x02\x01", "\x01\x02", 0, true}, // another item
		{"\x02\x02\x01", "\x01\x02", 1, true},
		{"\x01\x01\x01", "\x01\x01", 1, false},
	} {
		p.DistinctOutcomes = c.outcomes
		progress.RecordStates(p, []byte(c.items), []byte(c.outputs))
		if fp := progress.Fingerprint(p); seen[fp] == c.progress {
			t.Errorf("step %d: progress is %v", i+1, !c.progress)
		} else {
			seen[fp] = true
		}
	}
}

func TestRunIsStalledAfterTurnsWithoutProgress(t *testing.T) {
	p := &harnessv1.ProgressTracker{DistinctOutcomes: 7, FirstMessage: 8}
	stalled := func(fp uint64) bool {
		progress.Push(p, 3, fp)
		return progress.Stalled(p, 3)
	}
	for i, c := range []struct {
		fp   uint64
		want bool
	}{{1, false}, {1, false}, {2, false}, {2, false}, {2, true}, {2, true}, {1, false}} {
		if got := stalled(c.fp); got != c.want {
			t.Fatalf("after turn %d: stalled %v", i+1, got)
		}
	}
	progress.Push(p, 3, 1)
	progress.ResetWindow(p)
	for i, want := range []bool{false, false, true} {
		if got := stalled(1); got != want {
			t.Fatalf("turn %d of a window that was reset: stalled %v", i+1, got)
		}
	}
	if p.GetDistinctOutcomes() != 7 || p.GetFirstMessage() != 8 {
		t.Fatalf("other fields have changed: %v", p)
	}
}

func TestThresholdBelowTwoNeverStalls(t *testing.T) {
	p := &harnessv1.ProgressTracker{Fingerprints: []uint64{1, 1, 1}}
	for _, threshold := range []uint32{0, 1} {
		if progress.Stalled(p, threshold) {
			t.Errorf("threshold %d", threshold)
		}
	}
	if progress.Stalled(nil, 3) {
		t.Error("nothing is remembered, and the run is stalled")
	}
}

func TestWindowHasTheNewestFingerprints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.Uint32Range(2, 6).Draw(t, "threshold")
		all := rapid.SliceOfN(rapid.Uint64Range(1, 2), 0, 40).Draw(t, "fingerprints")
		p := &harnessv1.ProgressTracker{}
		for _, fp := range all {
			progress.Push(p, threshold, fp)
		}
		kept := all[max(0, len(all)-2*int(threshold)):]
		if !slices.Equal(p.GetFingerprints(), kept) {
			t.Fatalf("kept %v, want %v", p.GetFingerprints(), kept)
		}
		last := all[max(0, len(all)-int(threshold)):]
		want := len(last) == int(threshold) && len(slices.Compact(slices.Clone(last))) == 1
		if got := progress.Stalled(p, threshold); got != want {
			t.Fatalf("%v, threshold %d: stalled %v", all, threshold, got)
		}
	})
}
