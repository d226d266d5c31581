package render

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/markdown"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/screen"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// LiveConfig configures a Live.
type LiveConfig struct {
	// Out is the terminal.
	Out io.Writer
	// Style is the style of lines; its Width is not used.
	Style Style
	// Size returns the size of the terminal, in columns and rows.
	Size func() (width, height int)
	// Now is the clock; nil is the system's.
	Now func() time.Time
	// Fetch returns the whole text of a content; nil shows the preview of a blob.
	Fetch func(*harnessv1.Content) string
	// Initial is the state of the run before its events.
	Initial Initial
	// Still disables live lines: only finished lines are written.
	Still bool
}

// Live shows a run on a terminal. Finished lines go up into the scrollback. Below are
// live lines: the end of the model's reasoning, the text that it writes, the calls that
// run, and a status line with gauges. It draws at most one frame per Frame.
type Live struct {
	cfg  LiveConfig
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	screen *screen.Screen
	md     *markdown.Renderer
	// plain prints the events that have no live form, to lines.
	plain *Text
	lines *lineBuffer
	// above are lines that go up with the next frame; ended is the sort of the last.
	above []string
	ended sort
	// current is the answer of the model in the current turn.
	current answer
	thought openThought
	text    openText
	calls   calls
	gauge   gauges
	// nests show the runs of sub-agents that are open; below reports that this shows one.
	nests []*nestLive
	below bool
	// asking reports whether a prompt is open below: no live lines are drawn.
	asking bool
	closed bool
	width  int
	height int
}

// Frame is the least time between two frames.
const Frame = 50 * time.Millisecond

// sort is the sort of a line, which determines the blank lines around it.
type sort int

const (
	sortNone sort = iota
	sortHead
	sortLine
	sortCall
	sortText
)

// lineBuffer collects the lines that Text prints.
type lineBuffer struct{ b strings.Builder }

func (c *lineBuffer) Write(p []byte) (int, error) { return c.b.Write(p) }

// take removes and returns the lines.
func (c *lineBuffer) take() []string {
	text := strings.TrimSuffix(c.b.String(), "\n")
	c.b.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// NewLive returns a Live that draws until Close.
func NewLive(cfg LiveConfig) *Live {
	l := newLive(cfg)
	l.done.Go(func() {
		ticker := time.NewTicker(Frame)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.Tick()
			case <-l.stop:
				return
			}
		}
	})
	return l
}

// newLive returns a Live that draws only on Tick.
func newLive(cfg LiveConfig) *Live {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Fetch == nil {
		cfg.Fetch = preview
	}
	l := &Live{cfg: cfg, stop: make(chan struct{}), screen: screen.New(cfg.Out), lines: &lineBuffer{}}
	l.plain = NewText(l.lines, cfg.Style, cfg.Fetch)
	l.plain.head = l.head
	l.gauge.Initial = cfg.Initial
	l.measure()
	return l
}

// Tick draws a frame if something has changed.
func (l *Live) Tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw()
}

// Close removes the live lines and stops drawing. Further calls do nothing.
func (l *Live) Close() {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	if !was {
		l.finish()
	}
	l.mu.Unlock()
	if !was {
		close(l.stop)
	}
	l.done.Wait()
}

// finish writes all that is open.
func (l *Live) finish() {
	l.endAnswer()
	l.flush(true)
	l.draw()
}

// Err returns the first error of a write.
func (l *Live) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.screen.Err()
}

// Shown returns the last whole text of the model that was shown.
func (l *Live) Shown() string { return l.plain.answer }

// Asking removes the live lines while a prompt is open below.
func (l *Live) Asking(asking bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking == asking {
		return
	}
	if asking {
		l.endAnswer()
		l.flush(true)
	}
	l.asking = asking
	l.draw()
}

// Write shows lines from outside of the run, such as those of a log.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		l.up(sortLine, clean(strings.TrimSuffix(line, "\n")))
	}
	l.drawIfIdle()
	return len(p), nil
}

// measure reads the size of the terminal.
func (l *Live) measure() {
	width, height := l.cfg.Size()
	l.width, l.height = max(width, narrowest), max(height, 2)
	look := markdown.Look{Width: min(l.width-1, widest), Colour: l.cfg.Style.Colour, UTF8: l.cfg.Style.UTF8}
	if l.md == nil || !l.md.HasLook(look) {
		l.md = markdown.New(look)
		l.text.rendered = nil
		l.thought.measure(look, ansi.StringWidth(l.cfg.Style.bar()))
	}
}

const (
	// narrowest is the narrowest supported terminal.
	narrowest = 20
	// widest is the maximum width of text: longer lines are hard to read.
	widest = 120
)

// drawIfIdle draws immediately when no frame follows.
func (l *Live) drawIfIdle() {
	if l.asking || l.closed {
		l.draw()
	}
}

// draw writes a frame.
func (l *Live) draw() {
	l.measure()
	var live []string
	if !l.asking && !l.closed && !l.cfg.Still {
		live = l.live()
	}
	if l.cfg.Still && len(l.above) == 0 {
		return
	}
	if l.cfg.Still {
		// A file or a pipe is no screen.
		if l.screen.Err() == nil {
			l.screen.Plain(l.above)
		}
	} else {
		l.screen.Frame(l.above, live, l.width, l.height)
	}
	l.above = nil
}

// live returns the current live lines.
func (l *Live) live() []string {
	now := l.cfg.Now()
	status := l.gauge.lines(l.cfg.Style, l.width-1, now, l.calls.running())
	agents := l.nestLines()
	if len(status) == 0 {
		return agents
	}
	calls := l.calls.lines(l.cfg.Style, l.width-1, now)
	room := l.height - 1 - len(status) - len(calls) - len(agents) - 3
	thought := l.thought.lines(l.cfg.Style, room)
	text := l.openLines(room)
	var live []string
	prev := l.ended
	for _, part := range []struct {
		sort  sort
		lines []string
	}{{sortText, thought}, {sortText, text}, {sortCall, calls}} {
		if len(part.lines) == 0 {
			continue
		}
		if apart(prev, part.sort) {
			live = append(live, "")
		}
		live = append(live, part.lines...)
		prev = part.sort
	}
	return append(append(append(live, agents...), ""), status...)
}

// apart reports whether a blank line separates two sorts of lines.
func apart(prev, next sort) bool {
	switch {
	case prev == sortNone || prev == sortHead:
		return false
	case next == sortHead || next == sortText || prev == sortText:
		return true
	}
	return false
}

// up adds finished lines to the next frame.
func (l *Live) up(what sort, lines ...string) {
	if len(lines) == 0 {
		return
	}
	if apart(l.ended, what) && (!l.below || what == l.ended) {
		l.above = append(l.above, "")
	}
	l.above, l.ended = append(l.above, lines...), what
}

// take adds the lines of plain to the next frame, broken at the width.
func (l *Live) take() {
	for _, line := range l.lines.take() {
		if line != "" {
			l.up(sortLine, hang(line, l.width-1)...)
		}
	}
}

// hang breaks a line at spaces and indents continuations by four columns.
func hang(line string, width int) []string {
	if ansi.StringWidth(line) <= width {
		return []string{line}
	}
	const indent = 4
	first := ansi.Wordwrap(line, width, "")
	head, rest, broken := strings.Cut(first, "\n")
	if !broken {
		return []string{line}
	}
	lines := []string{head}
	for part := range strings.SplitSeq(ansi.Wordwrap(strings.ReplaceAll(rest, "\n", " "), width-indent, ""), "\n") {
		lines = append(lines, strings.Repeat(" ", indent)+part)
	}
	return closeColours(lines)
}

// closeColours ends a colour that spans a break before it and starts it again after
// it.
func closeColours(lines []string) []string {
	on := ""
	for i, line := range lines {
		lines[i] = on + line
		for _, seq := range sequences().FindAllString(line, -1) {
			if on = seq; seq == "\x1b[0m" {
				on = ""
			}
		}
		if on != "" {
			lines[i] += "\x1b[0m"
		}
	}
	return slices.Clip(lines)
}
