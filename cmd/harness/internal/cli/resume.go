package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// resumeCmd resumes a run and follows it.
type resumeCmd struct {
	oneRun       `embed:""`
	modelFlag    `embed:""`
	Output       string        `enum:"text,json,jsonl" default:"text" help:"As in run."`
	Render       string        `enum:"auto,markdown,plain" default:"auto" help:"As in run."`
	Guidance     bool          `help:"As in run."`
	Tree         bool          `default:"true" negatable:"" help:"As in run."`
	NoStream     bool          `help:"Show the model's text only once it is complete."`
	MaxTurns     *uint32       `placeholder:"N" help:"New budget of turns."`
	MaxToolCalls *uint32       `placeholder:"N" help:"New budget of tool calls."`
	MaxTokens    *uint64       `placeholder:"N" help:"New budget of tokens."`
	MaxCost      *float64      `placeholder:"USD" help:"New budget in US dollars."`
	MaxRuns      *uint32       `placeholder:"N" help:"New budget of runs of sub-agents."`
	Timeout      *durationFlag `placeholder:"D" help:"New budget of running time."`
}

func (c *resumeCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.check(a); err != nil {
		return exit.Error, err
	}
	if err := checkModel(a, &c.Model, c.Server == ""); err != nil {
		return exit.Error, err
	}
	f := &runFollower{target: &c.target, run: c.RunID, newModel: c.Model, output: c.Output, render: c.Render, guidance: c.Guidance, alone: !c.Tree, noDeltas: c.NoStream}
	defer func() { disconnect(ctx, a, f.session) }()
	current, err := f.drive(ctx, a)
	if err != nil {
		return before(err)
	}
	c.RunID = f.run
	f.after, f.since = current.GetRun().GetVersion(), current.GetRun().GetUpdateTime().AsTime()
	if c.Model != "" {
		f.model = c.Model
	}
	// Also for a running run: an unprocessed interrupt may be in its inbox, and the
	// gateway knows.
	id := follow.NewID()
	answer, err := f.session.Client.ResumeRun(ctx, &harnessv1.ResumeRunRequest{
		Namespace: c.Namespace, RunId: c.RunID, RequestId: id, Budgets: c.extends(), Model: c.Model,
	})
	ended := fault.ReasonOf(err) == fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED)
	if ended && c.extends() == nil && c.Model == "" {
		// A message that was stored before may have resumed and ended it.
		if now, err := f.current(ctx); err == nil && now.GetRun().GetVersion() > f.after {
			return f.follow(ctx, a)
		}
	}
	switch {
	case ended:
		return exit.Error, fmt.Errorf("run %s has ended (%s) and cannot be resumed; to continue it with a message: harness send %s%s 'what to do now'",
			c.RunID, render.StatusName(current.GetRun().GetStatus()), c.RunID, c.words(a))
	case err != nil:
		return exit.Error, c.named(err)
	case c.extends() != nil, c.Model != "":
		f.sent = []string{id} // stored also for a run that runs
	case !answer.GetAlreadyRunning():
		f.sent, f.resume = []string{id}, id
	case hasEnded(current.GetRun().GetStatus()):
		// A message in the inbox is about to resume it.
		if err := f.moved(ctx, a); err != nil {
			return before(err)
		}
	}
	return f.follow(ctx, a)
}

func (c *resumeCmd) extends() *harnessv1.Budgets {
	return budgets(c.MaxTurns, c.MaxToolCalls, c.MaxTokens, c.MaxCost, c.MaxRuns, c.Timeout)
}

// budgetFlags maps the field of a request to the flag of resume that sets it.
var budgetFlags = map[string]string{
	"budgets.turns": "--max-turns", "budgets.tool_calls": "--max-tool-calls", "budgets.tokens": "--max-tokens",
	"budgets.cost_usd": "--max-cost", "budgets.wall_clock": "--timeout", "budgets.runs": "--max-runs", "model": "--model",
}

// named replaces the field in an error by the flag that sets it.
func (c *resumeCmd) named(err error) error {
	if fault.ReasonOf(err) != fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD) {
		return err
	}
	return namedField(err, budgetFlags)
}

// movePatience is how long a run may take to continue after a message.
const movePatience = 10 * time.Second

// moved waits until the run's log has grown.
func (f *runFollower) moved(ctx context.Context, a *app) error {
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(movePatience); time.Now().Before(deadline); {
		now, err := f.current(ctx)
		if err != nil {
			return err
		}
		if now.GetRun().GetVersion() > f.after {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
