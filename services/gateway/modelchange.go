package gateway

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ModelOf returns the model that an input changes to, with its field in the request; empty
// if it changes none.
func ModelOf(item *harnessv1.InboxItem) (field, model string) {
	if change := item.GetModelChange(); change != nil {
		return "model_change.model", change.GetModel()
	}
	return "model", item.GetResume().GetModel()
}

// WindowWith returns the input window of a run after a change of its model, in tokens: that of
// the new model if the run has that of the former one, else its own limit, as far as the new
// model takes it. 0 keeps the one of the run. present is the run's, 0 if it is not resolved
// yet; before and after are those of the models.
func WindowWith(present, before, after uint32) uint32 {
	if after == 0 || present != 0 && present != before && present <= after {
		return 0
	}
	return after
}
