package follower

import (
	"context"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
)

// NewPrompt returns the prompts of a terminal; nil without one.
func NewPrompt(ctx context.Context, a *console.Console) *follow.Prompt {
	if !a.Interactive() {
		return nil
	}
	return follow.NewPrompt(a.In, a.Err, follow.Screen{
		Style: func() render.Style { return a.Style(a.Err) },
		Rows:  func() int { return console.Rows(a.Err) },
		Page:  func(text string) error { return a.Page(ctx, text) },
		Edit:  func(text string, command bool) (string, error) { return a.Edit(ctx, text, command) },
	})
}
