package show

import (
	"context"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follower"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func (WatchCmd) Help() string {
	return "Example:\n\n  harness watch r-x7k2qm4a --output jsonl"
}

// WatchCmd prints the events of a run and follows it until it is parked or has ended.
type WatchCmd struct {
	target.OneRun `embed:""`
	Output        string `enum:"text,jsonl" default:"text" help:"Format of the output: text, or jsonl with one line per event."`
	Render        string `enum:"auto,markdown,plain" default:"auto" help:"As in run."`
	Guidance      bool   `help:"As in run."`
	Tree          bool   `default:"true" negatable:"" help:"As in run."`
	From          uint64 `placeholder:"VERSION" help:"First version to show. Default: 1."`
	NoStream      bool   `help:"Show the model's text only once it is complete."`
}

func (c *WatchCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	session, err := c.Connect(ctx, a, backend.Read)
	if err != nil {
		return console.Before(err)
	}
	f := &follower.Follower{
		Target: &c.Target, Session: session, Run: c.RunID, Output: c.Output, Render: c.Render, Guidance: c.Guidance,
		Alone: !c.Tree, NoDeltas: c.NoStream, OnlyWatch: true,
	}
	defer func() { target.Disconnect(ctx, a, f.Session) }()

	current, err := f.Current(ctx)
	if err != nil {
		return exit.Error, err
	}
	switch running := current.GetRun().GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING; {
	case running && session.ReadOnly:
		f.Stored = true
	case running && !session.Working:
		// No process works on it, so it would never end: continue it here.
		if err := f.CarryOn(ctx, a, current); err != nil {
			return console.Before(err)
		}
		f.OnlyWatch = false
	}
	if c.From > 0 {
		f.After = c.From - 1
	}
	return f.Follow(ctx, a)
}
