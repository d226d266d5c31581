package main

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
)

// drive gets a session in which the run can go on, and says how the run stood before:
// a mesh that is started here takes up at once what was killed, or has a message.
func (f *following) drive(ctx context.Context, a *app) (*harnessv1.GetRunResponse, error) {
	var err error
	if f.session, err = f.target.connect(ctx, a, backend.Read); err != nil {
		return nil, err
	}
	stands, err := f.stands(ctx)
	if err != nil || f.session.Working {
		return stands, err
	}
	return stands, f.carryOn(ctx, a, stands)
}

// carryOn makes the session of a lone gateway one with a whole mesh, if the run
// that it is started for can go on in this process.
func (f *following) carryOn(ctx context.Context, a *app, stands *harnessv1.GetRunResponse) error {
	if err := usable(a, stands); err != nil {
		return fmt.Errorf("run %s cannot continue here and is unchanged: %w", f.run, err)
	}
	a.disconnect(ctx, f.session)
	f.session = nil
	var err error
	f.session, err = f.target.connect(ctx, a, backend.Drive, f.run)
	return err
}

// usable says whether one of the models of a run can be opened in this process. A
// turn without a model fails the run for good, so it is refused beforehand.
func usable(a *app, stands *harnessv1.GetRunResponse) error {
	models, err := a.models()
	if err != nil {
		return err
	}
	_, _, err = provider.OpenWith(models, stands.GetRun().GetModel(), a.env)
	if err == nil {
		return nil
	}
	for _, fallback := range stands.GetSpec().GetAgent().GetFallbackModels() {
		if _, _, other := provider.OpenWith(models, fallback, a.env); other == nil {
			a.note("%s cannot be used; %s replaces it: %s", stands.GetRun().GetModel(), fallback, err)
			return nil
		}
	}
	return err
}
