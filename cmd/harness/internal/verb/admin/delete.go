// Package admin is the verbs for what remains between runs: delete, prompt, profile, agent and
// version.
package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// DeleteCmd deletes parked or ended runs.
type DeleteCmd struct {
	target.Target `embed:""`
	OlderThan     *ageFlag `placeholder:"AGE" help:"Delete all runs that ended longer ago, such as 12h or 30d. Parked runs stay."`
	RunIDs        []string `arg:"" optional:"" name:"run" help:"Ids of the runs, or their beginnings; last is the newest one."`
}

// ageFlag is an age above zero.
type ageFlag struct{ d time.Duration }

// UnmarshalText parses days, such as 30d, and the format of time.ParseDuration.
func (f *ageFlag) UnmarshalText(text []byte) error {
	const day = 24 * time.Hour
	if days, found := strings.CutSuffix(string(text), "d"); found {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			f.d = time.Duration(n) * day
			return nil
		}
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: expected an age above zero, such as 12h or 30d", text)
	}
	f.d = d
	return nil
}

func (c *DeleteCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.check(a); err != nil {
		return exit.Error, err
	}
	session, err := c.Connect(ctx, a, backend.Store)
	if err != nil {
		return console.Before(err)
	}
	defer target.Disconnect(ctx, a, session)
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	ids, err := c.selected(ctx, session)
	if err != nil {
		return exit.Error, err
	}
	if len(ids) == 0 {
		a.Report("no run ended longer than %s ago", target.Brief(c.OlderThan.d))
		return exit.Done, nil
	}
	return c.all(ctx, a, session, ids)
}

// check checks the arguments.
func (c *DeleteCmd) check(a *console.Console) error {
	if err := c.Target.Check(a); err != nil {
		return err
	}
	switch {
	case c.Namespace == "*":
		return errors.New("--namespace: a run has one namespace, not *")
	case c.OlderThan != nil && len(c.RunIDs) > 0:
		return errors.New("--older-than and RUN are mutually exclusive: use one of them")
	case c.OlderThan == nil && len(c.RunIDs) == 0:
		return errors.New("missing RUN: expected the id of at least one run, or --older-than AGE")
	}
	for _, id := range c.RunIDs {
		if err := console.RunName("RUN", id); err != nil {
			return err
		}
	}
	return nil
}

// selected returns the ids of the runs to delete. Nothing is deleted if one is ambiguous.
func (c *DeleteCmd) selected(ctx context.Context, s *backend.Session) (ids []string, err error) {
	for _, handle := range c.RunIDs {
		id, err := c.Resolve(ctx, s, handle)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if c.OlderThan == nil {
		return ids, nil
	}
	limit := time.Now().Add(-c.OlderThan.d)
	for run, err := range c.Listed(ctx, s, nil, false, target.RunsPage) {
		if err != nil {
			return nil, err
		}
		if target.HasEnded(run.GetStatus()) && run.GetUpdateTime().AsTime().Before(limit) {
			ids = append(ids, run.GetRunId())
		}
	}
	return ids, nil
}

// all deletes runs one after the other, also after one that cannot be deleted.
func (c *DeleteCmd) all(ctx context.Context, a *console.Console, s *backend.Session, ids []string) (int, error) {
	failed := 0
	for _, id := range ids {
		line, err := c.one(ctx, s, id)
		switch {
		case context.Cause(ctx) != nil:
			return exit.Error, context.Cause(ctx)
		case err != nil && len(ids) == 1:
			return exit.Error, err
		case err != nil:
			failed++
			a.Report("%s: %s", id, console.Message(err))
			continue
		}
		if err := console.Emit(a.Out, []byte(line)); err != nil {
			return exit.Error, err
		}
	}
	if failed > 0 {
		return exit.Error, fmt.Errorf("%d of %d runs were not deleted", failed, len(ids))
	}
	return exit.Done, nil
}

// one deletes a run and returns the line about it.
func (c *DeleteCmd) one(ctx context.Context, s *backend.Session, id string) (string, error) {
	answer, err := s.Client.DeleteRun(ctx, &harnessv1.DeleteRunRequest{Namespace: c.Namespace, RunId: id})
	if err != nil {
		return "", err
	}
	line := id + " deleted"
	switch {
	case answer.GetExisted():
		line += " before"
	case s.Local:
		// A lone gateway closes the run; repair deletes its data later.
		line += "; what is stored of it goes away when harness next runs or serves on " + c.Data
	}
	return line, nil
}

func (DeleteCmd) Help() string {
	return "Example:\n\n  harness delete --older-than 30d"
}
