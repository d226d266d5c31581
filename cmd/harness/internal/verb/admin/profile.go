package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ProfileCmd groups the commands for profiles.
type ProfileCmd struct {
	Show  profileShowCmd  `cmd:"" help:"Show what is known of the work in a workspace."`
	Reset profileResetCmd `cmd:"" help:"Forget what is known of it."`
}

// oneProfile names a profile.
type oneProfile struct {
	target.GatewayCall `embed:""`
	Profile            string `arg:"" optional:"" help:"Directory of the workspace, or the profile that tasks name. Default: the current directory."`
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

type profileShowCmd struct {
	oneProfile `embed:""`
	Output     string `enum:"text,json" default:"text" help:"Format: lines (text) or one object (json)."`
}

func (c *profileShowCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	name, err := c.name()
	if err != nil {
		return exit.Error, err
	}
	return c.With(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		r, err := client.GetProfile(ctx, &harnessv1.GetProfileRequest{Namespace: c.Namespace, Profile: name})
		if err != nil {
			return err
		}
		f := r.GetFigures()
		if c.Output == "json" {
			return json.NewEncoder(a.Out).Encode(map[string]any{
				"profile": name, "maturity": f.GetMaturity(), "total_runs": f.GetTotalRuns(), "avg_quality": f.GetAvgQuality(), "feedback_rate": f.GetFeedbackRate(),
				"common_issues": append([]string{}, f.GetCommonIssues()...), "quality_multiplier": f.GetQualityMultiplier(),
			})
		}
		fmt.Fprintf(a.Out, "%s\nmaturity: %s, %d runs\nscore: %.2f on average\nfeedback: %.0f %% of the runs\ncommon issues: %s\nmultiplier: %.2f\n", console.OneLine(name),
			console.OneLine(f.GetMaturity()), f.GetTotalRuns(), f.GetAvgQuality(), 100*f.GetFeedbackRate(),
			console.OneLine(strings.Join(f.GetCommonIssues(), ", ")), f.GetQualityMultiplier())
		return nil
	})
}

// profileResetCmd forgets a profile.
type profileResetCmd struct {
	oneProfile `embed:""`
}

func (c *profileResetCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	name, err := c.name()
	if err != nil {
		return exit.Error, err
	}
	return c.With(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		if _, err := client.ResetProfile(ctx, &harnessv1.ResetProfileRequest{Namespace: c.Namespace, Profile: name}); err != nil {
			return err
		}
		a.Report("the profile of %s is new", name)
		return nil
	})
}
