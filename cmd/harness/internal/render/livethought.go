package render

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/markdown"
)

// maxThought is the maximum number of lines of a piece of reasoning on the terminal:
// while it is written the last ones, afterwards the first ones. People read the answer;
// harness show has all of the reasoning.
const maxThought = 6

// openThought is the reasoning that the model is writing.
type openThought struct {
	md *markdown.Renderer
	// open is the part that has not gone up.
	open string
	// rendered is the text of as lines, kept from frame to frame.
	rendered []string
	of       string
}

// measure sets how the lines are rendered, after a bar of some columns.
func (o *openThought) measure(look markdown.Look, bar int) {
	look.Width -= bar
	o.md, o.rendered = markdown.New(look), nil
}

// add takes more of the reasoning.
func (o *openThought) add(text string) { o.open += markdown.Clean(text) }

// lines returns the last lines of the open part, at most room.
func (o *openThought) lines(s Style, room int) []string {
	if o.open == "" || room <= 0 {
		return nil
	}
	if o.rendered == nil || o.of != o.open {
		o.of, o.rendered = o.open, o.md.Render(tail(o.open))
	}
	lines := o.rendered
	return s.thought(lines[max(0, len(lines)-min(room, maxThought)):])
}

// endThought sends up the first lines of the reasoning.
func (l *Live) endThought() {
	if l.thought.open == "" {
		return
	}
	lines := l.thought.md.Render(l.thought.open)
	if len(lines) > maxThought+1 {
		first := lines[:maxThought:maxThought]
		for len(first) > 1 && first[len(first)-1] == "" {
			first = first[:len(first)-1]
		}
		lines = append(first, fmt.Sprintf("%s %d more lines", l.cfg.Style.mark("…", "..."), len(lines)-len(first)))
	}
	l.up(sortText, l.cfg.Style.thought(lines)...)
	l.thought.open = ""
}

// thought returns lines of reasoning: dim, without other colours, after a bar.
func (s Style) thought(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = s.dim(strings.TrimRight(s.bar()+ansi.Strip(line), " "))
	}
	return out
}

// ThoughtLines returns the lines of reasoning, unchanged but for colours and control
// characters; none if it is empty.
func (s Style) ThoughtLines(text string) []string {
	if text == "" {
		return nil
	}
	return s.thought(strings.Split(strings.TrimSuffix(clean(text), "\n"), "\n"))
}
