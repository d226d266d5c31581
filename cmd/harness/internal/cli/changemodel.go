package cli

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
)

// modelFlag names another model for an existing run.
type modelFlag struct {
	Model string `placeholder:"PROVIDER:NAME" help:"Model of the run from the next model call on."`
}

// checkModel makes the model absolute. In local mode it refuses one that cannot be opened
// with the variables of this terminal. A model of the environment is for runs that are started.
func checkModel(a *app, model *string, local bool) error {
	if !a.given["model"] {
		*model = ""
		return nil
	}
	if *model == "" {
		return fmt.Errorf("--model: must not be empty")
	}
	named, err := absoluteModel(*model, ".", local)
	if err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	*model = named
	if !local {
		return nil
	}
	models, err := a.models()
	if err != nil {
		return err
	}
	if _, _, err := provider.OpenWith(models, named, a.env); err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	return nil
}

// changeModel gives a run another model.
func changeModel(ctx context.Context, s *backend.Session, namespace, run, model string) (id string, err error) {
	id = follow.NewID()
	_, err = s.Client.SendInput(ctx, &harnessv1.SendInputRequest{
		Namespace: namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_ModelChange{ModelChange: &harnessv1.ModelChange{Model: model}},
	})
	if err != nil {
		return "", namedField(err, map[string]string{"model_change.model": "--model"})
	}
	return id, nil
}

// changeModel gives the run the model of --model, if any.
func (f *runFollower) changeModel(ctx context.Context) error {
	if f.newModel == "" {
		return nil
	}
	id, err := changeModel(ctx, f.session, f.target.Namespace, f.run, f.newModel)
	if err != nil {
		return err
	}
	f.sent, f.model = append(f.sent, id), f.newModel
	return nil
}
