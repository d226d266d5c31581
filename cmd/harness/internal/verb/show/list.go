package show

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func (ListCmd) Help() string {
	return "Example:\n\n  harness list --status running,parked --limit 20"
}

// ListCmd lists runs.
type ListCmd struct {
	target.Target `embed:""`
	Status        []string `placeholder:"STATUS" help:"Only runs with this status: running, parked, done, stalled, failed or cancelled."`
	All           bool     `help:"Runs that sub-agents made too."`
	Limit         uint32   `placeholder:"N" help:"Only the newest N runs. Default: all."`
	Output        string   `enum:"text,json" default:"text" help:"Format of the output: text or json."`
}

func (c *ListCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	statuses, err := statusesOf(c.Status)
	if err != nil {
		return exit.Error, err
	}
	session, err := c.Connect(ctx, a, backend.Read)
	switch {
	case errors.Is(err, backend.ErrNoData) && c.Output == "json":
		return exit.Done, console.Emit(a.Out, []byte(`{"runs":[]}`))
	case errors.Is(err, backend.ErrNoData):
		a.Report("no runs")
		return exit.Done, nil
	case err != nil:
		return exit.Error, err
	}
	defer target.Disconnect(ctx, a, session)
	ctx, stop := a.CancelOnSignal(ctx)
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
		a.Report("no runs")
		return exit.Done, nil
	}
	out, err := write(ctx, a, session, runs)
	if err != nil {
		return exit.Error, err
	}
	if err := console.Emit(a.Out, out); err != nil {
		return exit.Error, err
	}
	if more {
		a.Report("there are older runs; --limit %d lists more", 2*uint64(c.Limit))
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
func (c *ListCmd) runs(ctx context.Context, s *backend.Session, statuses []harnessv1.RunStatus) (runs []*harnessv1.Run, more bool, err error) {
	page := uint32(target.RunsPage)
	if c.Limit > 0 {
		page = min(page, c.Limit+1)
	}
	for run, err := range c.Listed(ctx, s, statuses, c.All, page) {
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
func reportIdle(a *console.Console, s *backend.Session, runs []*harnessv1.Run) {
	if !s.Local || s.Working {
		return
	}
	for _, run := range runs {
		if run.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING {
			a.Report("no process is working on %s; harness resume %s continues it", run.GetRunId(), run.GetRunId())
		}
	}
}

func (c *ListCmd) json(ctx context.Context, _ *console.Console, s *backend.Session, runs []*harnessv1.Run) ([]byte, error) {
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

func (c *ListCmd) table(ctx context.Context, a *console.Console, s *backend.Session, runs []*harnessv1.Run) ([]byte, error) {
	table := newRunTable(runs, c.name, time.Now()).text(a.Width(a.Out))
	below, err := c.below(ctx, a, s, runs)
	return []byte(strings.TrimSuffix(table+below, "\n")), err
}

func (c *ListCmd) name(r *harnessv1.Run) string {
	if c.Namespace == "*" {
		return r.GetNamespace() + "/" + r.GetRunId()
	}
	return r.GetRunId()
}
