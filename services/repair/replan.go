package repair

import (
	"cmp"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// applyReplan requests another plan before the next turn.
func (d *decision) applyReplan(p *harnessv1.ReplanRequest) (refusal string) {
	if refusal := input.RecheckReplan(d.s); refusal != "" {
		return refusal
	}
	runstate.RecordWants(d.s, &harnessv1.HookState{Replan: cmp.Or(p.GetReason(), "it was asked for")})
	return ""
}
