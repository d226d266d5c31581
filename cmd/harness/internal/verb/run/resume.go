package run

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follower"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func (ResumeCmd) Help() string {
	return "Example:\n\n  harness resume r-x7k2qm4a --max-turns 100"
}

// ResumeCmd resumes a run and follows it.
type ResumeCmd struct {
	target.OneRun     `embed:""`
	runspec.ModelFlag `embed:""`
	Output            string            `enum:"text,json,jsonl" default:"text" help:"As in run."`
	Render            string            `enum:"auto,markdown,plain" default:"auto" help:"As in run."`
	Guidance          bool              `help:"As in run."`
	Tree              bool              `default:"true" negatable:"" help:"As in run."`
	NoStream          bool              `help:"Show the model's text only once it is complete."`
	MaxTurns          *uint32           `placeholder:"N" help:"New budget of turns."`
	MaxToolCalls      *uint32           `placeholder:"N" help:"New budget of tool calls."`
	MaxTokens         *uint64           `placeholder:"N" help:"New budget of tokens."`
	MaxCost           *float64          `placeholder:"USD" help:"New budget in US dollars."`
	MaxRuns           *uint32           `placeholder:"N" help:"New budget of runs of sub-agents."`
	Timeout           *console.Duration `placeholder:"D" help:"New budget of running time."`
}

func (c *ResumeCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	if err := runspec.CheckModel(a, &c.Model, c.Server == ""); err != nil {
		return exit.Error, err
	}
	f := &follower.Follower{Target: &c.Target, Run: c.RunID, NewModel: c.Model, Output: c.Output, Render: c.Render, Guidance: c.Guidance, Alone: !c.Tree, NoDeltas: c.NoStream}
	defer func() { target.Disconnect(ctx, a, f.Session) }()
	current, err := f.Drive(ctx, a)
	if err != nil {
		return console.Before(err)
	}
	c.RunID = f.Run
	f.After, f.Since = current.GetRun().GetVersion(), current.GetRun().GetUpdateTime().AsTime()
	if c.Model != "" {
		f.Model = c.Model
	}
	// Also for a running run: an unprocessed interrupt may be in its inbox, and the
	// gateway knows.
	id := follow.NewID()
	answer, err := f.Session.Client.ResumeRun(ctx, &harnessv1.ResumeRunRequest{
		Namespace: c.Namespace, RunId: c.RunID, RequestId: id, Budgets: c.extends(), Model: c.Model,
	})
	ended := fault.ReasonOf(err) == fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED)
	if ended && c.extends() == nil && c.Model == "" {
		// A message that was stored before may have resumed and ended it.
		if now, err := f.Current(ctx); err == nil && now.GetRun().GetVersion() > f.After {
			return f.Follow(ctx, a)
		}
	}
	switch {
	case ended:
		return exit.Error, fmt.Errorf("run %s has ended (%s) and cannot be resumed; to continue it with a message: harness send %s%s 'what to do now'",
			c.RunID, render.StatusName(current.GetRun().GetStatus()), c.RunID, c.Words(a))
	case err != nil:
		return exit.Error, c.named(err)
	case c.extends() != nil, c.Model != "":
		f.Sent = []string{id} // stored also for a run that runs
	case !answer.GetAlreadyRunning():
		f.Sent, f.Resume = []string{id}, id
	case target.HasEnded(current.GetRun().GetStatus()):
		// A message in the inbox is about to resume it.
		if err := f.Moved(ctx, a); err != nil {
			return console.Before(err)
		}
	}
	return f.Follow(ctx, a)
}

func (c *ResumeCmd) extends() *harnessv1.Budgets {
	return runspec.Budgets(c.MaxTurns, c.MaxToolCalls, c.MaxTokens, c.MaxCost, c.MaxRuns, c.Timeout)
}

// budgetFlags maps the field of a request to the flag of resume that sets it.
var budgetFlags = map[string]string{
	"budgets.turns": "--max-turns", "budgets.tool_calls": "--max-tool-calls", "budgets.tokens": "--max-tokens",
	"budgets.cost_usd": "--max-cost", "budgets.wall_clock": "--timeout", "budgets.runs": "--max-runs", "model": "--model",
}

// named replaces the field in an error by the flag that sets it.
func (c *ResumeCmd) named(err error) error {
	if fault.ReasonOf(err) != fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD) {
		return err
	}
	return console.NamedField(err, budgetFlags)
}
