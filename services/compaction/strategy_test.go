package compaction

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestStrategiesApplyUnderPressure: each from its own level, in order, until the window
// is below it. Pressure and events are those of the window afterwards.
func TestStrategiesApplyUnderPressure(t *testing.T) {
	const soft, blocking = harnessv1.PressureLevel_PRESSURE_LEVEL_SOFT, harnessv1.PressureLevel_PRESSURE_LEVEL_BLOCKING
	var applied []string
	free := func(name string, from harnessv1.PressureLevel, tokens uint32) strategy {
		return strategy{from: from, apply: func(_ *harnessv1.StepInput, d *runstate.Draft) []string {
			applied = append(applied, name)
			d.Step.Snapshot.TokenBudget.UsedTokens -= tokens
			d.Emit(event.ContextUsage(nil))
			return nil
		}}
	}
	all := []strategy{free("a", soft, 100), free("b", soft, 100), free("c", blocking, 1)}
	for _, c := range []struct {
		counted uint32
		want    []string
		used    uint32
		level   harnessv1.PressureLevel
		events  int
	}{
		{400, nil, 700, 0, 1},
		{550, []string{"a"}, 750, 0, 2},
		{600, []string{"a", "b"}, 700, 0, 3},
		{849, []string{"a", "b"}, 949, soft, 4},
		{850, []string{"a", "b", "c"}, 949, soft, 5},
	} {
		applied = nil
		out, err := decide(input(c.counted), all)
		step := out.GetOutcome().GetStep()
		if err != nil || !slices.Equal(applied, c.want) || step.GetSnapshot().GetTokenBudget().GetUsedTokens() != c.used ||
			step.GetCompactionComplete().GetPressure() != c.level || len(out.GetOutcome().GetEvents()) != c.events {
			t.Errorf("counted %d: applied %q, %v, %v", c.counted, applied, out, err)
		}
	}
}

// TestStrategyNeedsAnObservation: the decision returns its key and nothing else.
func TestStrategyNeedsAnObservation(t *testing.T) {
	out, err := decide(input(600), []strategy{{apply: func(*harnessv1.StepInput, *runstate.Draft) []string { return []string{"summary"} }}})
	if err != nil || out.GetOutcome() != nil || !slices.Equal(out.GetNeeds().GetKeys(), []string{"summary"}) {
		t.Errorf("got %v, %v", out, err)
	}
}

// input is a step in a window of 1,000 tokens: 300 are reported, and counted more were
// counted.
func input(counted uint32) *harnessv1.StepInput {
	return &harnessv1.StepInput{
		Observed: []*harnessv1.Observation{{Key: KeyTokens, Value: &harnessv1.Observation_Tokens{Tokens: counted}}},
		Step: &harnessv1.Step{
			Snapshot: &harnessv1.Snapshot{
				TokenBudget: &harnessv1.TokenBudget{ReportedTokens: 300},
				Config:      runstate.Resolve(&harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{MaxInputTokens: proto.Uint32(1000)}}, 0),
			},
			Message: &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}},
		},
	}
}
