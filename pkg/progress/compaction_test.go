package progress_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

func TestCompacted(t *testing.T) {
	type tracker = harnessv1.ProgressTracker
	window := []uint64{7, 7}
	for _, c := range []struct {
		name       string
		from, want *tracker
		restarts   bool
	}{
		{"new outcomes", &tracker{Fingerprints: window, FreshOutcomes: 1, RepeatedOutcomes: 9, IdleCompactions: 2}, &tracker{}, true},
		{"only repeated outcomes", &tracker{Fingerprints: window, RepeatedOutcomes: 1, IdleCompactions: 1}, &tracker{IdleCompactions: 2}, true},
		{"no outcomes", &tracker{Fingerprints: window, IdleCompactions: 2}, &tracker{IdleCompactions: 2}, true},
		{"only repeated outcomes, and told", &tracker{Fingerprints: window, RepeatedOutcomes: 1, IdleCompactions: 3, ToldTooLarge: true},
			&tracker{Fingerprints: window, IdleCompactions: 4, ToldTooLarge: true}, false},
		{"no outcomes, and told", &tracker{Fingerprints: window, ToldTooLarge: true}, &tracker{Fingerprints: window, ToldTooLarge: true}, false},
		{"new outcomes, and told", &tracker{Fingerprints: window, FreshOutcomes: 1, IdleCompactions: 5, ToldTooLarge: true}, &tracker{ToldTooLarge: true}, true},
		{"what is not the window's", &tracker{Fingerprints: window, DistinctOutcomes: 4, FirstMessage: 5}, &tracker{DistinctOutcomes: 4, FirstMessage: 5}, true},
	} {
		d := &harnessv1.DoomLoop{Corrections: 1, CallsSinceCorrection: 2}
		for range 3 {
			progress.RecordCall(d, "read", 1, 1)
		}
		progress.Compacted(c.from, d)
		if !proto.Equal(c.from, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.from, c.want)
		}
		if restarted := progress.Detect(d) == nil && len(d.GetStrict())+len(d.GetLoose())+len(d.GetTools()) == 0; restarted != c.restarts {
			t.Errorf("%s: the calls are %v", c.name, d)
		}
		if d.GetCorrections() != 1 || d.GetCallsSinceCorrection() != 2 {
			t.Errorf("%s: the corrections are %v", c.name, d)
		}
	}
	progress.Compacted(nil, nil)
	d := &harnessv1.DoomLoop{Strict: []uint64{1}}
	if progress.Compacted(nil, d); len(d.GetStrict()) > 0 {
		t.Error("without a tracker the calls are kept")
	}
}

func TestMustTellTooLarge(t *testing.T) {
	for _, c := range []struct {
		tracker *harnessv1.ProgressTracker
		want    bool
	}{
		{nil, false},
		{&harnessv1.ProgressTracker{IdleCompactions: 2}, false},
		{&harnessv1.ProgressTracker{IdleCompactions: 3}, true},
		{&harnessv1.ProgressTracker{IdleCompactions: 9}, true},
		{&harnessv1.ProgressTracker{IdleCompactions: 9, ToldTooLarge: true}, false},
	} {
		if got := progress.MustTellTooLarge(c.tracker); got != c.want {
			t.Errorf("%v: %t", c.tracker, got)
		}
	}
	if n := len(progress.TooLargeText()); n > 1<<10 {
		t.Errorf("the text has %d bytes", n)
	}
}

// TestCompactionsDoNotHideAnIdleAgent: an agent without new outcomes is stalled, however
// often its view changes.
func TestCompactionsDoNotHideAnIdleAgent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, d := &harnessv1.ProgressTracker{FreshOutcomes: rapid.Uint32Range(0, 1).Draw(t, "fresh")}, &harnessv1.DoomLoop{}
		threshold := rapid.Uint32Range(2, 4).Draw(t, "threshold")
		compactions := 0
		for turn := 0; ; turn++ {
			if rapid.IntRange(0, 2).Draw(t, "compaction") > 0 {
				progress.Compacted(p, d)
				compactions++
			}
			p.ToldTooLarge = p.GetToldTooLarge() || progress.MustTellTooLarge(p)
			p.RepeatedOutcomes++
			if !p.GetToldTooLarge() {
				p.DistinctOutcomes++
			}
			progress.Push(p, threshold, progress.Fingerprint(p))
			if progress.Stalled(p, threshold) {
				break
			}
			if compactions > 4+int(threshold) {
				t.Fatalf("not stalled after %d turns and %d compactions: %v", turn, compactions, p)
			}
		}
	})
}
