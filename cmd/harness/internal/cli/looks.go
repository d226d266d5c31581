package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
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
func (f *runFollower) laidOut(a *app, stream any) bool {
	return f.render == renderMarkdown || f.render != renderPlain && a.capable(stream)
}

// capable reports whether a stream is a terminal that can move its cursor.
func (a *app) capable(stream any) bool {
	kind := a.env("TERM")
	return isTerminal(stream) && kind != "" && kind != "dumb"
}

// tell returns the narrator of the run.
func (f *runFollower) newNarrator(ctx context.Context, a *app) narrator {
	fetchOf := func(run string) func(*harnessv1.Content) string {
		return func(c *harnessv1.Content) string {
			whole, err := backend.Text(ctx, f.session.Client, f.target.Namespace, run, c)
			if err != nil {
				return c.GetBlob().GetPreview() + "..."
			}
			return whole
		}
	}
	fetch := fetchOf(f.run)
	style := a.style(a.err)
	style.Guidance = f.guidance
	if !f.laidOut(a, a.err) {
		text := render.NewText(a.err, style, fetch)
		if f.alone {
			return text
		}
		return render.NewTree(text, style, fetchOf)
	}
	initial := render.Initial{Begun: f.after > 0}
	if answer, err := f.session.Client.GetState(ctx, &harnessv1.GetStateRequest{Namespace: f.target.Namespace, RunId: f.run, Version: f.after}); err == nil {
		initial.State = answer.GetSnapshot()
	}
	live := render.NewLive(render.LiveConfig{
		Out: a.err, Style: style, Size: func() (int, int) { return a.size(a.err) },
		Fetch: fetch, Initial: initial, Still: !a.capable(a.err),
	})
	a.logs.redirect(live)
	if f.alone {
		return live
	}
	return render.NewTree(live, style, fetchOf)
}

// size returns the size of the terminal in columns and rows; 80 by 24 without one.
func (a *app) size(stream any) (width, height int) {
	width, height = a.width(stream), 24
	if f, ok := stream.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	if width == 0 {
		width = 80
	}
	return width, height
}

// rendered returns an answer for stdout: unchanged for programs, laid out for people.
func (f *runFollower) rendered(a *app, answer string) string {
	if !f.laidOut(a, a.out) {
		if isTerminal(a.out) {
			return render.Clean(answer)
		}
		return answer
	}
	width, _ := a.size(a.out)
	style := a.style(a.out)
	look := markdown.Look{Width: width - 1, Colour: style.Colour, UTF8: style.UTF8}
	text := strings.Join(markdown.New(look).Render(answer), "\n")
	if isTerminal(a.out) {
		text = "\n" + text // the result of the run is above
	}
	return text
}

// outlet is the destination of the program's log: above a live display while there is
// one.
type outlet struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes to the current destination.
func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// redirect changes the destination.
func (o *outlet) redirect(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = w
}
