package repair_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestFeaturesSetWhatARunLeavesUnset: the settings of features are below those of the run, and both are in its first state.
func TestFeaturesSetWhatARunLeavesUnset(t *testing.T) {
	for _, c := range []struct{ own, want uint32 }{{0, 4}, {9, 9}} {
		s := spec()
		s.Config.Stop = &harnessv1.StopConfig{WorkCompleteMaxRetries: proto.Uint32(1)}
		if c.own > 0 {
			s.Config.Stop.MaxTurns = proto.Uint32(c.own)
		}
		in := first(begun(), s, nothing()...)
		trigger := in.GetStep().GetRepairTrigger()
		trigger.Features, trigger.Entitlements, trigger.Tier = []string{"short"}, []string{"has_synthesis_swarm"}, "gold"
		trigger.FeatureConfig = &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(4), WorkCompleteMaxRetries: proto.Uint32(2)}}
		got := decide(t, in).GetStep().GetSnapshot()
		if got.GetMaxTurns() != c.want || got.GetConfig().GetStop().GetMaxTurns() != c.want || got.GetConfig().GetStop().GetWorkCompleteMaxRetries() != 1 {
			t.Errorf("own %d: %d, %v", c.own, got.GetMaxTurns(), got.GetConfig().GetStop())
		}
		if !slices.Equal(got.GetFeatures(), trigger.GetFeatures()) || !slices.Equal(got.GetEntitlements(), trigger.GetEntitlements()) || got.GetTier() != "gold" {
			t.Errorf("recorded are %v, %v, %q", got.GetFeatures(), got.GetEntitlements(), got.GetTier())
		}
	}
}
