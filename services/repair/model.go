package repair

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// applyModel changes the model from the next model call on, and the window if it is not 0. It resets the factor, the
// window and the refusals that were learnt about the former model.
func (d *decision) applyModel(to string, window uint32) {
	s := d.s
	if window > 0 {
		s.Config.Context.MaxInputTokens = &window
	}
	from := s.GetModel()
	if from == to {
		return
	}
	s.Model = to
	if s.GetTokenBudget() != nil {
		b := runstate.OwnBudget(s)
		b.Factor, b.FactorModel, b.WindowTokens, b.Exceeded, b.Refusals = 0, "", 0, false, 0
	}
	setFactor(s)
	if s.GetConfig().GetModel().GetIdleTimeout().AsDuration() == runstate.DefaultIdleTimeout && catalogue.Default().Reasons(to) {
		s.Config.Model.IdleTimeout = durationpb.New(runstate.ReasoningIdleTimeout)
	}
	d.Emit(event.ModelChanged(from, to))
}
