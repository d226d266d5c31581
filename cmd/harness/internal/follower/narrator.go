package follower

import (
	"context"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/markdown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// narrator prints a run for people on stderr.
type narrator interface {
	follow.Printer
	// Header prints the run, its model, workspace and goal.
	Header(run, model, workspace, goal string)
	// Lines prints additional lines.
	Lines(lines ...string)
	// Result prints the result.
	Result(*harnessv1.HarnessResult)
	// Shown returns the last complete text of the model that was printed.
	Shown() string
	// Close ends a live display.
	Close()
}

const (
	renderMarkdown = "markdown"
	renderPlain    = "plain"
)

// laidOut reports whether a stream gets rendered Markdown: if requested or, unless plain
// text was requested, on a terminal that supports it.
func (f *Follower) laidOut(a *console.Console, stream any) bool {
	return f.Render == renderMarkdown || f.Render != renderPlain && a.Capable(stream)
}

// tell returns the narrator of the run.
func (f *Follower) newNarrator(ctx context.Context, a *console.Console) narrator {
	fetchOf := func(run string) func(*harnessv1.Content) string {
		return func(c *harnessv1.Content) string {
			whole, err := backend.Text(ctx, f.Session.Client, f.Target.Namespace, run, c)
			if err != nil {
				return c.GetBlob().GetPreview() + "..."
			}
			return whole
		}
	}
	fetch := fetchOf(f.Run)
	style := a.Style(a.Err)
	style.Guidance, style.Once = f.Guidance, a.Once
	if !f.laidOut(a, a.Err) {
		text := render.NewText(a.Err, style, fetch)
		if f.Alone {
			return text
		}
		return render.NewTree(text, style, fetchOf)
	}
	initial := render.Initial{Begun: f.After > 0}
	if answer, err := f.Session.Client.GetState(ctx, &harnessv1.GetStateRequest{Namespace: f.Target.Namespace, RunId: f.Run, Version: f.After}); err == nil {
		initial.State = answer.GetSnapshot()
	}
	live := render.NewLive(render.LiveConfig{
		Out: a.Err, Style: style, Size: func() (int, int) { return a.Size(a.Err) },
		Fetch: fetch, Initial: initial, Still: !a.Capable(a.Err),
	})
	a.Logs.Redirect(live)
	if f.Alone {
		return live
	}
	return render.NewTree(live, style, fetchOf)
}

// rendered returns an answer for stdout: unchanged for programs, laid out for people.
func (f *Follower) rendered(a *console.Console, answer string) string {
	if !f.laidOut(a, a.Out) {
		if console.IsTerminal(a.Out) {
			return render.Clean(answer)
		}
		return answer
	}
	width, _ := a.Size(a.Out)
	style := a.Style(a.Out)
	look := markdown.Look{Width: width - 1, Colour: style.Colour, UTF8: style.UTF8}
	text := strings.Join(markdown.New(look).Render(answer), "\n")
	if console.IsTerminal(a.Out) {
		text = "\n" + text // the result of the run is above
	}
	return text
}
