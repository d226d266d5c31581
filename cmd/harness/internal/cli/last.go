package cli

import (
	"context"
	"errors"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
)

// lastCmd prints the id of the newest run, for use in other commands.
type lastCmd struct {
	target `embed:""`
	Status []string `placeholder:"STATUS" help:"Only runs with this status, as in list."`
}

var errNoRuns = errors.New("no run yet: start one with harness run GOAL")

func (c *lastCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return exit.Error, err
	}
	if c.Namespace == "*" {
		return exit.Error, errors.New("--namespace: a run has one namespace, not *")
	}
	statuses, err := statusesOf(c.Status)
	if err != nil {
		return exit.Error, err
	}
	session, err := c.connect(ctx, a, backend.Read)
	switch {
	case errors.Is(err, backend.ErrNoData):
		return exit.Error, errNoRuns
	case err != nil:
		return exit.Error, err
	}
	defer disconnect(ctx, a, session)
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	for run, err := range c.listed(ctx, session, statuses, false, 1) {
		if err != nil {
			return exit.Error, err
		}
		return exit.Done, emit(a.out, []byte(run.GetRunId()))
	}
	if len(statuses) > 0 {
		return exit.Error, errors.New("--status: no run has this status")
	}
	return exit.Error, errNoRuns
}
