package repair

import (
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// applyMode changes the mode of work, from the next call on.
func (d *decision) applyMode(m *harnessv1.ModeChange) (refusal string) {
	if refusal := input.RecheckMode(d.s, m, d.made.Modes); refusal != "" {
		return refusal
	}
	from, to := runstate.Mode(d.s), m.GetMode()
	if d.s.Mode = to; from != to {
		d.changeMode(from, to)
	}
	return ""
}

// changeMode reports a change of the mode of work to observers and to the model.
func (d *decision) changeMode(from, to string) {
	d.Emit(event.ModeChanged(from, to))
	d.GuideOn("mode", "mode", "", mode.ChangeText(from, to, d.made.Modes)).Kept = d.Marks()
}
