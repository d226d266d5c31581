package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
)

// defaultPager is used without PAGER.
const defaultPager = "less"

// newPrompt returns the prompts of a terminal; nil without one.
func newPrompt(ctx context.Context, a *app) *follow.Prompt {
	if !a.interactive() {
		return nil
	}
	return follow.NewPrompt(a.in, a.err, follow.Screen{
		Style: func() render.Style { return a.style(a.err) },
		Rows:  func() int { return rows(a.err) },
		Page:  func(text string) error { return a.page(ctx, text) },
		Edit:  func(text string, command bool) (string, error) { return a.edit(ctx, text, command) },
	})
}

// interactive reports whether a user can be prompted.
func (a *app) interactive() bool { return isTerminal(a.in) && isTerminal(a.err) }

// rows returns the height of a terminal; 0 if it is unknown.
func rows(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	_, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return height
}

// page shows a text in the user's pager, which reads its keys from the terminal.
func (a *app) page(ctx context.Context, text string) error {
	pager := cmp.Or(strings.TrimSpace(a.env("PAGER")), defaultPager)
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)
	cmd.Env = a.environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), a.err, a.err
	err := cmd.Run()
	dropTyped(a.in)
	if err != nil {
		return fmt.Errorf("the pager %q failed (%w): set PAGER to another", pager, err)
	}
	return nil
}
