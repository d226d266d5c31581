package main

import (
	"context"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// deleteCmd deletes a parked or ended run.
type deleteCmd struct {
	oneRun `embed:""`
}

func (c *deleteCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return follow.ExitError, err
	}
	session, err := c.connect(ctx, a, backend.Store)
	if err != nil {
		return before(err)
	}
	defer a.disconnect(ctx, session)
	answer, err := session.Client.DeleteRun(ctx, &harnessv1.DeleteRunRequest{Namespace: c.Namespace, RunId: c.RunID})
	if err != nil {
		return follow.ExitError, err
	}
	line := c.RunID + " deleted"
	switch {
	case answer.GetExisted():
		line += " before"
	case session.Local:
		// A lone gateway closes the run; repair deletes its data later.
		line += "; what is stored of it goes away when harness next runs or serves on " + c.Data
	}
	return follow.ExitDone, emit(a.out, []byte(line))
}
