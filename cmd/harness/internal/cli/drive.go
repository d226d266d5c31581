package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
)

// drive connects so that the run can continue, replaces a prefix of its id by the id, and
// returns its previous status: a mesh
// that is started here immediately continues a run that was killed or has a message.
func (f *runFollower) drive(ctx context.Context, a *app) (*harnessv1.GetRunResponse, error) {
	var err error
	if f.session, err = f.target.connect(ctx, a, backend.Read); err != nil {
		return nil, err
	}
	if f.run, err = f.target.resolve(ctx, f.session, f.run); err != nil {
		return nil, err
	}
	current, err := f.current(ctx)
	if err != nil {
		return current, err
	}
	if f.session.Process != nil && current.GetRun().GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING {
		if err := usable(a, current, f.newModel); err != nil {
			return nil, fmt.Errorf("run %s cannot continue here and is unchanged: %w", f.run, err)
		}
	}
	if f.session.Working {
		return current, nil
	}
	return current, f.carryOn(ctx, a, current)
}

// carryOn replaces the session of a lone gateway by a whole mesh, if the run can
// continue in this process.
func (f *runFollower) carryOn(ctx context.Context, a *app, current *harnessv1.GetRunResponse) error {
	if err := usable(a, current, f.newModel); err != nil {
		return fmt.Errorf("run %s cannot continue here and is unchanged: %w", f.run, err)
	}
	disconnect(ctx, a, f.session)
	f.session = nil
	var err error
	f.session, err = f.target.connect(ctx, a, backend.Drive, f.run)
	return err
}

// usable returns an error if none of the run's models can be opened in this process. A
// newModel replaces the first, if it is not empty. A
// turn without a model fails the run permanently, so it is refused beforehand.
func usable(a *app, current *harnessv1.GetRunResponse, newModel string) error {
	models, err := a.models()
	if err != nil {
		return err
	}
	_, _, err = provider.OpenWith(models, cmp.Or(newModel, current.GetRun().GetModel()), a.env)
	if err == nil {
		return nil
	}
	for _, fallback := range current.GetSpec().GetAgent().GetFallbackModels() {
		if _, _, other := provider.OpenWith(models, fallback, a.env); other == nil {
			a.printNote("%s cannot be used; %s replaces it: %s", current.GetRun().GetModel(), fallback, err)
			return nil
		}
	}
	return err
}
