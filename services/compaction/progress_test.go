package compaction_test

import (
	"fmt"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPassRestartsDetection: only a change of the view restarts the detection of stalls and
// loops, and counts as a compaction between which the agent has repeated itself.
func TestPassRestartsDetection(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	a.s.ProgressTracker = &harnessv1.ProgressTracker{Fingerprints: []uint64{1, 1}, RepeatedOutcomes: 2}
	a.s.DoomLoop = &harnessv1.DoomLoop{Strict: []uint64{1, 1}, Loose: []uint64{2, 2}, Tools: "a\na\n"}
	state := func() string {
		p, d := a.s.GetProgressTracker(), a.s.GetDoomLoop()
		return fmt.Sprint(len(p.GetFingerprints()), len(d.GetStrict()), p.GetRepeatedOutcomes(), p.GetIdleCompactions())
	}
	a.turn(1000, harnessv1.Durability_DURABILITY_REPLAYABLE)
	if a.step(); state() != "2 2 2 0" || a.s.GetCompactionPlan().GetPasses() != 0 {
		t.Errorf("without a pass: %s", state())
	}
	for range 7 {
		a.turn(1000, harnessv1.Durability_DURABILITY_REPLAYABLE)
	}
	if a.step(); state() != "0 0 0 1" || a.s.GetCompactionPlan().GetPasses() != 1 {
		t.Errorf("after %d passes: %s", a.s.GetCompactionPlan().GetPasses(), state())
	}
}
