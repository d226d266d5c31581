package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// promptCmd groups the commands for the prompts with which work is judged.
type promptCmd struct {
	List  promptListCmd  `cmd:"" help:"List the prompts of a namespace."`
	Show  promptShowCmd  `cmd:"" help:"Print a prompt."`
	Set   promptSetCmd   `cmd:"" help:"Replace a prompt for all runs of a namespace."`
	Unset promptUnsetCmd `cmd:"" help:"Restore the built-in prompt."`
}

// gatewayCall are the flags of a command that makes one call.
type gatewayCall struct {
	target `embed:""`
}

// with connects, and calls do.
func (c *gatewayCall) with(ctx context.Context, a *app, do func(ctx context.Context, client harnessv1.GatewayServiceClient) error) (int, error) {
	if err := c.check(a); err != nil {
		return exit.Error, err
	}
	session, err := c.connect(ctx, a, backend.Store)
	if err != nil {
		return before(err)
	}
	defer func() { disconnect(ctx, a, session) }()
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	if err := do(ctx, session.Client); err != nil {
		return exit.Error, err
	}
	return exit.Done, nil
}

// promptListCmd lists prompts.
type promptListCmd struct {
	gatewayCall `embed:""`
}

func (c *promptListCmd) run(ctx context.Context, a *app) (int, error) {
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		r, err := client.GetPrompts(ctx, &harnessv1.GetPromptsRequest{Namespace: c.Namespace})
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "PROMPT\tTIER\tDIGEST\tSET\tBY")
		for _, p := range r.GetPrompts() {
			set, by := "built in", ""
			if p.GetSetTime() != nil {
				set, by = p.GetSetTime().AsTime().Local().Format(time.DateTime), p.GetSetBy()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", oneLine(p.GetId()), oneLine(p.GetTier()), oneLine(p.GetDigest()), set, oneLine(by))
		}
		return w.Flush()
	})
}

// onePrompt names a prompt.
type onePrompt struct {
	gatewayCall `embed:""`
	ID          string `arg:"" name:"id" help:"Which prompt, such as verifier_system."`
	Tier        string `placeholder:"TIER" help:"Tier of callers for whose runs it is. Default: all that have no separate one."`
}

// promptShowCmd prints a prompt.
type promptShowCmd struct {
	onePrompt `embed:""`
}

func (c *promptShowCmd) run(ctx context.Context, a *app) (int, error) {
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		r, err := client.GetPrompts(ctx, &harnessv1.GetPromptsRequest{Namespace: c.Namespace})
		if err != nil {
			return err
		}
		var found *harnessv1.Prompt
		var ids []string
		for _, p := range r.GetPrompts() {
			if p.GetSetTime() == nil {
				ids = append(ids, p.GetId())
			}
			if p.GetId() == c.ID && (p.GetTier() == "" || p.GetTier() == c.Tier) {
				found = p // that of the tier comes last
			}
		}
		if found == nil {
			return fmt.Errorf("unknown prompt %q: must be one of %s", c.ID, strings.Join(ids, ", "))
		}
		fmt.Fprintln(a.out, render.Clean(found.GetText()))
		return nil
	})
}

// promptSetCmd replaces a prompt.
type promptSetCmd struct {
	onePrompt `embed:""`
	File      string `placeholder:"FILE" help:"File with the text. Default: stdin."`
}

func (c *promptSetCmd) run(ctx context.Context, a *app) (int, error) {
	var data []byte
	var err error
	if c.File == "" {
		data, err = io.ReadAll(a.in)
	} else {
		data, err = os.ReadFile(c.File)
	}
	if err != nil {
		return exit.Error, err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return exit.Error, errors.New("the text is empty: harness prompt unset restores the built-in prompt")
	}
	return c.set(ctx, a, text)
}

// set sets a prompt and prints which one counts.
func (c *onePrompt) set(ctx context.Context, a *app, text string) (int, error) {
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		r, err := client.SetPrompt(ctx, &harnessv1.SetPromptRequest{Namespace: c.Namespace, Id: c.ID, Tier: c.Tier, Text: text})
		if err != nil {
			return err
		}
		what := "built in"
		if r.GetPrompt().GetSetTime() != nil {
			what = "set"
		}
		fmt.Fprintf(a.out, "%s %s (%s)\n", oneLine(r.GetPrompt().GetId()), oneLine(r.GetPrompt().GetDigest()), what)
		return nil
	})
}

// promptUnsetCmd restores a prompt.
type promptUnsetCmd struct {
	onePrompt `embed:""`
}

func (c *promptUnsetCmd) run(ctx context.Context, a *app) (int, error) { return c.set(ctx, a, "") }

// profileCmd groups the commands for profiles.
type profileCmd struct {
	Show  profileShowCmd  `cmd:"" help:"Show what is known of the work in a workspace."`
	Reset profileResetCmd `cmd:"" help:"Forget what is known of it."`
}

// oneProfile names a profile.
type oneProfile struct {
	gatewayCall `embed:""`
	Profile     string `arg:"" optional:"" help:"Directory of the workspace, or the profile that tasks name. Default: the current directory."`
}

// name returns the name of the profile. A path of this machine is made absolute.
func (c *oneProfile) name() (string, error) {
	if c.Profile == "" || strings.ContainsRune(c.Profile, filepath.Separator) || c.Profile == "." || c.Profile == ".." {
		path, err := filepath.Abs(c.Profile)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(path)
	}
	return c.Profile, nil
}

// profileShowCmd shows a profile.
type profileShowCmd struct {
	oneProfile `embed:""`
	Output     string `enum:"text,json" default:"text" help:"Format: lines (text) or one object (json)."`
}

func (c *profileShowCmd) run(ctx context.Context, a *app) (int, error) {
	name, err := c.name()
	if err != nil {
		return exit.Error, err
	}
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		r, err := client.GetProfile(ctx, &harnessv1.GetProfileRequest{Namespace: c.Namespace, Profile: name})
		if err != nil {
			return err
		}
		f := r.GetFigures()
		if c.Output == "json" {
			return json.NewEncoder(a.out).Encode(map[string]any{
				"profile": name, "maturity": f.GetMaturity(), "total_runs": f.GetTotalRuns(), "avg_quality": f.GetAvgQuality(), "feedback_rate": f.GetFeedbackRate(),
				"common_issues": append([]string{}, f.GetCommonIssues()...), "quality_multiplier": f.GetQualityMultiplier(),
			})
		}
		fmt.Fprintf(a.out, "%s\nmaturity: %s, %d runs\nscore: %.2f on average\nfeedback: %.0f %% of the runs\ncommon issues: %s\nmultiplier: %.2f\n", oneLine(name),
			oneLine(f.GetMaturity()), f.GetTotalRuns(), f.GetAvgQuality(), 100*f.GetFeedbackRate(), oneLine(strings.Join(f.GetCommonIssues(), ", ")), f.GetQualityMultiplier())
		return nil
	})
}

// profileResetCmd forgets a profile.
type profileResetCmd struct {
	oneProfile `embed:""`
}

func (c *profileResetCmd) run(ctx context.Context, a *app) (int, error) {
	name, err := c.name()
	if err != nil {
		return exit.Error, err
	}
	return c.with(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		if _, err := client.ResetProfile(ctx, &harnessv1.ResetProfileRequest{Namespace: c.Namespace, Profile: name}); err != nil {
			return err
		}
		a.printNote("the profile of %s is new", name)
		return nil
	})
}
