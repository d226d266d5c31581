package compaction

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// strategy is one way to make room in the model's window. It is a value in its own
// file, named in strategies; the decision knows nothing else about it.
type strategy struct {
	// from is the pressure at which it applies.
	from harnessv1.PressureLevel
	// apply makes room: it changes the snapshot of the draft, lowers used_tokens in its
	// token_budget by what was freed, and emits its events. It is pure. If it returns
	// keys, it needs their observations first, and the draft is dropped.
	apply func(in *harnessv1.StepInput, d *runstate.Draft) (needs []string)
}

// strategies are tried in order until the pressure is below where they apply: the
// cheapest first.
var strategies []strategy

// apply applies the strategies while their pressure lasts. It returns the keys of the
// observations that one of them needs first.
func apply(strategies []strategy, in *harnessv1.StepInput, d *runstate.Draft) (needs []string) {
	for _, s := range strategies {
		level, _ := pressure(d.Step.GetSnapshot().GetTokenBudget())
		if level < s.from {
			continue
		}
		if needs := s.apply(in, d); len(needs) > 0 {
			return needs
		}
	}
	return nil
}
