package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// listCmd lists runs.
type listCmd struct {
	target `embed:""`
	Status []string `placeholder:"STATUS" help:"Only runs with this status: running, parked, done, stalled, failed or cancelled."`
	Output string   `enum:"text,json" default:"text" help:"Format of the output: text or json."`
}

func (c *listCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return follow.ExitError, err
	}
	var statuses []harnessv1.RunStatus
	for _, name := range c.Status {
		number, ok := harnessv1.RunStatus_value["RUN_STATUS_"+strings.ToUpper(name)]
		if !ok || number == 0 {
			return follow.ExitError, fmt.Errorf("--status: %q: expected running, parked, done, stalled, failed or cancelled", name)
		}
		statuses = append(statuses, harnessv1.RunStatus(number))
	}
	session, err := c.connect(ctx, a, backend.Read)
	switch {
	case errors.Is(err, backend.ErrNoData) && c.Output == "json":
		return follow.ExitDone, emit(a.out, []byte(`{"runs":[]}`))
	case errors.Is(err, backend.ErrNoData):
		a.printNote("no runs")
		return follow.ExitDone, nil
	case err != nil:
		return follow.ExitError, err
	}
	defer a.disconnect(ctx, session)
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	runs, err := c.runs(ctx, session, statuses)
	if err != nil {
		return follow.ExitError, err
	}
	reportIdle(a, session, runs)
	write := c.table
	switch {
	case c.Output == "json":
		write = c.json
	case len(runs) == 0:
		a.printNote("no runs")
		return follow.ExitDone, nil
	}
	out, err := write(ctx, a, session, runs)
	if err != nil {
		return follow.ExitError, err
	}
	return follow.ExitDone, emit(a.out, out)
}

func (c *listCmd) runs(ctx context.Context, s *backend.Session, statuses []harnessv1.RunStatus) ([]*harnessv1.Run, error) {
	request := &harnessv1.ListRunsRequest{Namespace: c.Namespace, Statuses: statuses, PageSize: 1000}
	var runs []*harnessv1.Run
	for {
		page, err := s.Client.ListRuns(ctx, request)
		if err != nil {
			return nil, err
		}
		runs = append(runs, page.GetRuns()...)
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return runs, nil
		}
	}
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
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATUS\tTURNS\tUPDATED\tMODEL\tGOAL")
	for _, r := range runs {
		status := render.StatusName(r.GetStatus())
		if kind := r.GetReason().GetKind(); kind != "" {
			status += " " + kind
		}
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%s\t%s\t%s\n", c.name(r), render.Clean(status), r.GetTurnCount(), r.GetMaxTurns(),
			r.GetUpdateTime().AsTime().Local().Format(time.DateTime), render.Short(r.GetModel(), 40), render.Short(r.GetGoal(), 60))
	}
	w.Flush()
	below, err := c.below(ctx, a, s, runs)
	return []byte(strings.TrimSuffix(text.String()+below, "\n")), err
}

// name returns the name of a run in a list.
func (c *listCmd) name(r *harnessv1.Run) string {
	if c.Namespace == "*" {
		return r.GetNamespace() + "/" + r.GetRunId()
	}
	return r.GetRunId()
}
