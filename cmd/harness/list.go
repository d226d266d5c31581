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
	"github.com/harnessmesh/harnessmesh/pkg/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// listCmd lists runs.
type listCmd struct {
	target `embed:""`
	Status []string `placeholder:"STATUS" help:"Only runs with this status: running, parked, done, stalled, failed or cancelled."`
	Output string   `enum:"text,json" default:"text" help:"text for people, or json."`
}

func (c *listCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return follow.ExitError, err
	}
	var statuses []harnessv1.RunStatus
	for _, name := range c.Status {
		number, ok := harnessv1.RunStatus_value["RUN_STATUS_"+strings.ToUpper(name)]
		if !ok || number == 0 {
			return follow.ExitError, fmt.Errorf("--status: %q: want running, parked, done, stalled, failed or cancelled", name)
		}
		statuses = append(statuses, harnessv1.RunStatus(number))
	}
	runs, err := c.runs(ctx, a, statuses)
	if err != nil {
		return follow.ExitError, err
	}
	if c.Output == "json" {
		return c.json(a, runs)
	}
	return c.table(a, runs)
}

func (c *listCmd) runs(ctx context.Context, a *app, statuses []harnessv1.RunStatus) ([]*harnessv1.Run, error) {
	session, err := c.connect(ctx, a, backend.Read)
	if errors.Is(err, backend.ErrNoData) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer a.disconnect(ctx, session)
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	request := &harnessv1.ListRunsRequest{Namespace: c.Namespace, Statuses: statuses, PageSize: 1000}
	var runs []*harnessv1.Run
	for {
		page, err := session.Client.ListRuns(ctx, request)
		if err != nil {
			return nil, err
		}
		runs = append(runs, page.GetRuns()...)
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			sayIdle(a, session, runs)
			return runs, nil
		}
	}
}

// sayIdle says that a run that is RUNNING by its log has nobody who works on it.
func sayIdle(a *app, s *backend.Session, runs []*harnessv1.Run) {
	if !s.Local || s.Working {
		return
	}
	for _, run := range runs {
		if run.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING {
			a.note("no process works on %s at the moment; harness resume %s lets it go on", run.GetRunId(), run.GetRunId())
		}
	}
}

func (c *listCmd) json(a *app, runs []*harnessv1.Run) (int, error) {
	out := []byte(`{"runs":[`)
	for i, run := range runs {
		line, err := eventjson.Run(run)
		if err != nil {
			return follow.ExitError, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, line...)
	}
	return follow.ExitDone, emit(a.out, append(out, "]}"...))
}

func (c *listCmd) table(a *app, runs []*harnessv1.Run) (int, error) {
	if len(runs) == 0 {
		a.note("no runs")
		return follow.ExitDone, nil
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATUS\tTURNS\tUPDATED\tMODEL\tGOAL")
	for _, r := range runs {
		name := r.GetRunId()
		if c.Namespace == "*" {
			name = r.GetNamespace() + "/" + name
		}
		status := render.StatusName(r.GetStatus())
		if kind := r.GetReason().GetKind(); kind != "" {
			status += " " + kind
		}
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%s\t%s\t%s\n", name, render.Clean(status), r.GetTurnCount(), r.GetMaxTurns(),
			r.GetUpdateTime().AsTime().Local().Format(time.DateTime), render.Short(r.GetModel(), 40), render.Short(r.GetGoal(), 60))
	}
	w.Flush()
	return follow.ExitDone, emit(a.out, []byte(strings.TrimSuffix(text.String(), "\n")))
}
