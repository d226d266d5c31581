package show

import (
	"context"
	"errors"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
)

func (LastCmd) Help() string {
	return "Example:\n\n  harness show $(harness last)"
}

// LastCmd prints the id of the newest run, for use in other commands.
type LastCmd struct {
	target.Target `embed:""`
	Status        []string `placeholder:"STATUS" help:"Only runs with this status, as in list."`
}

var errNoRuns = errors.New("no run yet: start one with harness run GOAL")

func (c *LastCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	if c.Namespace == "*" {
		return exit.Error, errors.New("--namespace: a run has one namespace, not *")
	}
	statuses, err := statusesOf(c.Status)
	if err != nil {
		return exit.Error, err
	}
	session, err := c.Connect(ctx, a, backend.Read)
	switch {
	case errors.Is(err, backend.ErrNoData):
		return exit.Error, errNoRuns
	case err != nil:
		return exit.Error, err
	}
	defer target.Disconnect(ctx, a, session)
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	for run, err := range c.Listed(ctx, session, statuses, false, 1) {
		if err != nil {
			return exit.Error, err
		}
		return exit.Done, console.Emit(a.Out, []byte(run.GetRunId()))
	}
	if len(statuses) > 0 {
		return exit.Error, errors.New("--status: no run has this status")
	}
	return exit.Error, errNoRuns
}
