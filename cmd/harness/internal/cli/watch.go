package cli

import (
	"context"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// watchCmd prints the events of a run and follows it until it is parked or has ended.
type watchCmd struct {
	oneRun   `embed:""`
	Output   string `enum:"text,jsonl" default:"text" help:"Format of the output: text, or jsonl with one line per event."`
	Render   string `enum:"auto,markdown,plain" default:"auto" help:"As in run."`
	Guidance bool   `help:"As in run."`
	Tree     bool   `default:"true" negatable:"" help:"As in run."`
	From     uint64 `placeholder:"VERSION" help:"First version to show. Default: 1."`
	NoStream bool   `help:"Show the model's text only once it is complete."`
}

func (c *watchCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return exit.Error, err
	}
	session, err := c.connect(ctx, a, backend.Read)
	if err != nil {
		return before(err)
	}
	f := &runFollower{
		target: &c.target, session: session, run: c.RunID, output: c.Output, render: c.Render, guidance: c.Guidance,
		alone: !c.Tree, noDeltas: c.NoStream, onlyWatch: true,
	}
	defer func() { disconnect(ctx, a, f.session) }()

	current, err := f.current(ctx)
	if err != nil {
		return exit.Error, err
	}
	switch running := current.GetRun().GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING; {
	case running && session.ReadOnly:
		f.stored = true
	case running && !session.Working:
		// No process works on it, so it would never end: continue it here.
		if err := f.carryOn(ctx, a, current); err != nil {
			return before(err)
		}
		f.onlyWatch = false
	}
	if c.From > 0 {
		f.after = c.From - 1
	}
	return f.follow(ctx, a)
}
