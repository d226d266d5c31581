package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// listCmd lists runs.
type listCmd struct {
	target `embed:""`
	Status []string `placeholder:"STATUS" help:"Only runs with this status: running, parked, done, stalled, failed or cancelled."`
	All    bool     `help:"Runs that sub-agents made too."`
	Limit  uint32   `placeholder:"N" help:"Only the newest N runs. Default: all."`
	Output string   `enum:"text,json" default:"text" help:"Format of the output: text or json."`
}

func (c *listCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return exit.Error, err
	}
	statuses, err := statusesOf(c.Status)
	if err != nil {
		return exit.Error, err
	}
	session, err := c.connect(ctx, a, backend.Read)
	switch {
	case errors.Is(err, backend.ErrNoData) && c.Output == "json":
		return exit.Done, emit(a.out, []byte(`{"runs":[]}`))
	case errors.Is(err, backend.ErrNoData):
		a.printNote("no runs")
		return exit.Done, nil
	case err != nil:
		return exit.Error, err
	}
	defer disconnect(ctx, a, session)
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	runs, more, err := c.runs(ctx, session, statuses)
	if err != nil {
		return exit.Error, err
	}
	reportIdle(a, session, runs)
	write := c.table
	switch {
	case c.Output == "json":
		write = c.json
	case len(runs) == 0:
		a.printNote("no runs")
		return exit.Done, nil
	}
	out, err := write(ctx, a, session, runs)
	if err != nil {
		return exit.Error, err
	}
	if err := emit(a.out, out); err != nil {
		return exit.Error, err
	}
	if more {
		a.printNote("there are older runs; --limit %d lists more", 2*uint64(c.Limit))
	}
	return exit.Done, nil
}

// statusesOf returns the statuses that flags name.
func statusesOf(names []string) (statuses []harnessv1.RunStatus, err error) {
	for _, name := range names {
		number, ok := harnessv1.RunStatus_value["RUN_STATUS_"+strings.ToUpper(name)]
		if !ok || number == 0 {
			return nil, fmt.Errorf("--status: %q: expected running, parked, done, stalled, failed or cancelled", name)
		}
		statuses = append(statuses, harnessv1.RunStatus(number))
	}
	return statuses, nil
}

// runs returns the newest runs, and whether the limit left some out.
func (c *listCmd) runs(ctx context.Context, s *backend.Session, statuses []harnessv1.RunStatus) (runs []*harnessv1.Run, more bool, err error) {
	page := uint32(runsPage)
	if c.Limit > 0 {
		page = min(page, c.Limit+1)
	}
	for run, err := range c.listed(ctx, s, statuses, c.All, page) {
		switch {
		case err != nil:
			return nil, false, err
		case c.Limit > 0 && len(runs) == int(c.Limit):
			return runs, true, nil
		}
		runs = append(runs, run)
	}
	return runs, false, nil
}

// reportIdle prints a note about the runs that are RUNNING while no process works on them.
func reportIdle(a *app, s *backend.Session, runs []*harnessv1.Run) {
	if !s.Local || s.Working {
		return
	}
	for _, run := range runs {
		if run.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING {
			a.printNote("no process is working on %s; harness resume %s continues it", run.GetRunId(), run.GetRunId())
		}
	}
}

func (c *listCmd) json(ctx context.Context, _ *app, s *backend.Session, runs []*harnessv1.Run) ([]byte, error) {
	results, err := c.all(ctx, s, runs)
	if err != nil {
		return nil, err
	}
	out := []byte(`{"runs":[`)
	for i, run := range runs {
		line, err := runJSON(run, results.of(run))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, line...)
	}
	return append(out, "]}"...), nil
}

func (c *listCmd) table(ctx context.Context, a *app, s *backend.Session, runs []*harnessv1.Run) ([]byte, error) {
	table := newRunTable(runs, c.name, time.Now()).text(a.width(a.out))
	below, err := c.below(ctx, a, s, runs)
	return []byte(strings.TrimSuffix(table+below, "\n")), err
}

// name returns the name of a run in a list.
func (c *listCmd) name(r *harnessv1.Run) string {
	if c.Namespace == "*" {
		return r.GetNamespace() + "/" + r.GetRunId()
	}
	return r.GetRunId()
}
