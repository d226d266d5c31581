package runstate_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestRecordOutcome: what is new counts as progress, and what was taken away until the model
// has the message that it does not fit. Without compaction nothing about it is stored.
func TestRecordOutcome(t *testing.T) {
	type tracker = harnessv1.ProgressTracker
	for _, c := range []struct {
		name             string
		stall, compacted bool
		from             *tracker
		novelty          runstate.Novelty
		want             *tracker
	}{
		{"fresh", true, true, nil, runstate.Fresh, &tracker{DistinctOutcomes: 1, FreshOutcomes: 1}},
		{"repeated", true, true, nil, runstate.Repeated, &tracker{DistinctOutcomes: 1, RepeatedOutcomes: 1}},
		{"known", true, true, nil, runstate.Known, &tracker{RepeatedOutcomes: 1}},
		{"fresh, and told", true, true, &tracker{ToldTooLarge: true}, runstate.Fresh, &tracker{DistinctOutcomes: 1, FreshOutcomes: 1, ToldTooLarge: true}},
		{"repeated, and told", true, true, &tracker{ToldTooLarge: true}, runstate.Repeated, &tracker{RepeatedOutcomes: 1, ToldTooLarge: true}},
		{"fresh without compaction", true, false, nil, runstate.Fresh, &tracker{DistinctOutcomes: 1}},
		{"known without compaction", true, false, nil, runstate.Known, &tracker{}},
		{"fresh without stalls", false, true, nil, runstate.Fresh, nil},
		{"repeated without stalls", false, true, nil, runstate.Repeated, nil},
	} {
		s := &harnessv1.Snapshot{ProgressTracker: c.from, Config: &harnessv1.LoopConfig{
			Stall:    &harnessv1.StallConfig{Enabled: proto.Bool(c.stall)},
			DoomLoop: &harnessv1.DoomLoopConfig{Enabled: proto.Bool(true)},
			Context:  &harnessv1.ContextConfig{Compaction: proto.Bool(c.compacted)},
		}}
		runstate.RecordOutcome(s, "read", 1, 2, c.novelty)
		if !proto.Equal(s.GetProgressTracker(), c.want) {
			t.Errorf("%s: %v, want %v", c.name, s.GetProgressTracker(), c.want)
		}
		if len(s.GetDoomLoop().GetStrict()) != 1 {
			t.Errorf("%s: the calls are %v", c.name, s.GetDoomLoop())
		}
	}
}
