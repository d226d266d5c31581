package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// PromptCmd groups the commands for the prompts with which work is judged.
type PromptCmd struct {
	List  promptListCmd  `cmd:"" help:"List the prompts of a namespace."`
	Show  promptShowCmd  `cmd:"" help:"Print a prompt."`
	Set   promptSetCmd   `cmd:"" help:"Replace a prompt for all runs of a namespace."`
	Unset promptUnsetCmd `cmd:"" help:"Restore the built-in prompt."`
}

type promptListCmd struct {
	target.GatewayCall `embed:""`
}

func (c *promptListCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	return c.With(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		r, err := client.GetPrompts(ctx, &harnessv1.GetPromptsRequest{Namespace: c.Namespace})
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "PROMPT\tTIER\tDIGEST\tSET\tBY")
		for _, p := range r.GetPrompts() {
			set, by := "built in", ""
			if p.GetSetTime() != nil {
				set, by = p.GetSetTime().AsTime().Local().Format(time.DateTime), p.GetSetBy()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", console.OneLine(p.GetId()), console.OneLine(p.GetTier()), console.OneLine(p.GetDigest()), set, console.OneLine(by))
		}
		return w.Flush()
	})
}

// onePrompt names a prompt.
type onePrompt struct {
	target.GatewayCall `embed:""`
	ID                 string `arg:"" name:"id" help:"Which prompt, such as verifier_system."`
	Tier               string `placeholder:"TIER" help:"Tier of callers for whose runs it is. Default: all that have no separate one."`
}

// promptShowCmd prints a prompt.
type promptShowCmd struct {
	onePrompt `embed:""`
}

func (c *promptShowCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	return c.With(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
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
		fmt.Fprintln(a.Out, render.Clean(found.GetText()))
		return nil
	})
}

// promptSetCmd replaces a prompt.
type promptSetCmd struct {
	onePrompt `embed:""`
	File      string `placeholder:"FILE" help:"File with the text. Default: stdin."`
}

func (c *promptSetCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	var data []byte
	var err error
	if c.File == "" {
		data, err = io.ReadAll(a.In)
	} else {
		if data, err = os.ReadFile(c.File); err != nil {
			err = console.FileError("--file", err)
		}
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
func (c *onePrompt) set(ctx context.Context, a *console.Console, text string) (int, error) {
	return c.With(ctx, a, func(ctx context.Context, client harnessv1.GatewayServiceClient) error {
		r, err := client.SetPrompt(ctx, &harnessv1.SetPromptRequest{Namespace: c.Namespace, Id: c.ID, Tier: c.Tier, Text: text})
		if err != nil {
			return err
		}
		what := "built in"
		if r.GetPrompt().GetSetTime() != nil {
			what = "set"
		}
		fmt.Fprintf(a.Out, "%s %s (%s)\n", console.OneLine(r.GetPrompt().GetId()), console.OneLine(r.GetPrompt().GetDigest()), what)
		return nil
	})
}

// promptUnsetCmd restores a prompt.
type promptUnsetCmd struct {
	onePrompt `embed:""`
}

func (c *promptUnsetCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	return c.set(ctx, a, "")
}
