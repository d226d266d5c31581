package follower

import (
	"cmp"
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
)

// Drive connects so that the run can continue, replaces a prefix of its id by the id, and
// returns its previous status: a mesh
// that is started here immediately continues a run that was killed or has a message.
func (f *Follower) Drive(ctx context.Context, a *console.Console) (*harnessv1.GetRunResponse, error) {
	var err error
	if f.Session, err = f.Target.Connect(ctx, a, backend.Read); err != nil {
		return nil, err
	}
	if f.Run, err = f.Target.Resolve(ctx, f.Session, f.Run); err != nil {
		return nil, err
	}
	current, err := f.Current(ctx)
	if err != nil {
		return current, err
	}
	if p := f.Session.Process; p != nil && p.Background && current.GetRun().GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING {
		if err := usable(a, current, f.NewModel); err != nil {
			return nil, fmt.Errorf("run %s cannot continue here and is unchanged: %w", f.Run, err)
		}
	}
	if f.Session.Working {
		return current, nil
	}
	return current, f.CarryOn(ctx, a, current)
}

// CarryOn replaces the session of a lone gateway by a whole mesh, if the run can
// continue in this process.
func (f *Follower) CarryOn(ctx context.Context, a *console.Console, current *harnessv1.GetRunResponse) error {
	if err := usable(a, current, f.NewModel); err != nil {
		return fmt.Errorf("run %s cannot continue here and is unchanged: %w", f.Run, err)
	}
	target.Disconnect(ctx, a, f.Session)
	f.Session = nil
	var err error
	f.Session, err = f.Target.Connect(ctx, a, backend.Drive, f.Run)
	return err
}

// usable returns an error if none of the run's models can be opened in this process. A
// NewModel replaces the first, if it is not empty. A
// turn without a model fails the run permanently, so it is refused beforehand.
func usable(a *console.Console, current *harnessv1.GetRunResponse, newModel string) error {
	models, err := a.Models()
	if err != nil {
		return err
	}
	_, _, err = provider.OpenWith(models, cmp.Or(newModel, current.GetRun().GetModel()), a.Env)
	if err == nil {
		return nil
	}
	for _, fallback := range current.GetSpec().GetAgent().GetFallbackModels() {
		if _, _, other := provider.OpenWith(models, fallback, a.Env); other == nil {
			a.Report("%s cannot be used; %s replaces it: %s", current.GetRun().GetModel(), fallback, err)
			return nil
		}
	}
	return err
}
