package follower

import (
	"context"
	"io"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
)

// NewPrompt returns the prompts of a terminal; nil without one.
func NewPrompt(ctx context.Context, a *console.Console) *follow.Prompt {
	if !a.Interactive() {
		return nil
	}
	return promptOf(ctx, a, a.In)
}

// promptOf returns the prompts of a terminal, whose lines are read from in.
func promptOf(ctx context.Context, a *console.Console, in io.Reader) *follow.Prompt {
	return follow.NewPrompt(in, a.Err, follow.Screen{
		Style: func() render.Style { return a.Style(a.Err) },
		Rows:  func() int { return console.Rows(a.Err) },
		Page:  func(text string) error { return a.Page(ctx, text) },
		Edit:  func(text string, command bool) (string, error) { return a.Edit(ctx, text, command) },
	})
}
