package input

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// checkNewModel validates the model of a change.
func checkNewModel(field, model string) error {
	if model == "" {
		return fault.Invalid(field, "must not be empty")
	}
	return CheckModel(field, model)
}

// CheckModel accepts the empty name, which is resolved when the run starts.
func CheckModel(field, model string) error {
	if err := CheckSize(field, model, MaxName); err != nil || model == "" {
		return err
	}
	if provider, _, found := strings.Cut(model, ":"); !found || !runlog.Name.MatchString(provider) {
		return fault.Invalid(field, "%q: must be PROVIDER:NAME, such as openai:gpt-5", model)
	}
	return nil
}

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
