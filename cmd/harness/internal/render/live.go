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

// LiveConfig says where and how a run is shown live.
type LiveConfig struct {
	// Out is the terminal.
	Out io.Writer
	// Style is how lines look; its Width is not used.
	Style Style
	// Size is that of the terminal, in columns and rows.
	Size func() (width, height int)
	// Now is the clock; nil means the system's.
	Now func() time.Time
	// Fetch gets the whole text of a content; nil shows the beginning of what is
	// stored apart.
	Fetch func(*harnessv1.Content) string
	// Known is what is known of the run before its events.
	Known Known
	// Still has no live lines: what is finished is written, and nothing else.
	Still bool
}

// Live shows people a run on a terminal: what is finished goes up into the
// scrollback, and below it live the text that the model is writing, the calls that
// run, and a status line with gauges. It draws at most a frame each Frame.
type Live struct {
	cfg  LiveConfig
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	screen *screen.Screen
	md     *markdown.Renderer
	// plain makes the lines of all that needs no look of its own here.
	plain *Text
	lines *captured
	// above are lines that go up with the next frame, ended with what they end.
	above []string
	ended sort
	text  writing
	calls calls
	gauge gauges
	// asking says that a person is being asked below: nothing may live there.
	asking bool
	closed bool
	width  int
	height int
}

// Frame is the least time between two frames.
const Frame = 50 * time.Millisecond

// sort is what a line tells of, as far as the room between lines goes.
type sort int

const (
	sortNone sort = iota
	sortHead
	sortLine
	sortCall
	sortText
)

// captured collects the lines that Text writes.
type captured struct{ b strings.Builder }

func (c *captured) Write(p []byte) (int, error) { return c.b.Write(p) }

// NewLive shows a run from now on. Close ends it.
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

// newLive draws only when it is told to.
func newLive(cfg LiveConfig) *Live {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Fetch == nil {
		cfg.Fetch = preview
	}
	l := &Live{cfg: cfg, stop: make(chan struct{}), screen: screen.New(cfg.Out), lines: &captured{}}
	l.plain = NewText(l.lines, cfg.Style, cfg.Fetch)
	l.plain.head = l.head
	l.gauge.Known = cfg.Known
	l.measure()
	return l
}

// Tick draws a frame if there is something new to see.
func (l *Live) Tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw()
}

// Close takes the live lines away and ends the drawing; more than once is fine.
func (l *Live) Close() {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	if !was {
		l.rest()
	}
	l.mu.Unlock()
	if !was {
		close(l.stop)
	}
	l.done.Wait()
}

// rest ends all that is open.
func (l *Live) rest() {
	l.endText()
	l.flush(true)
	l.draw()
}

// Err is the first failure to write.
func (l *Live) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.screen.Err()
}

// Shown is the last whole text of the model that was shown.
func (l *Live) Shown() string { return l.plain.answer }

// Asking says that a person is being asked below: the live lines make room until
// it is over.
func (l *Live) Asking(asking bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking == asking {
		return
	}
	if asking {
		l.endText()
		l.flush(true)
	}
	l.asking = asking
	l.draw()
}

// Write shows lines that are not of the run, such as those of a log.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		l.up(sortLine, clean(strings.TrimSuffix(line, "\n")))
	}
	l.settle()
	return len(p), nil
}

// measure takes in the size of the terminal.
func (l *Live) measure() {
	width, height := l.cfg.Size()
	l.width, l.height = max(width, narrowest), max(height, 2)
	look := markdown.Look{Width: min(l.width-1, widest), Colour: l.cfg.Style.Colour, UTF8: l.cfg.Style.UTF8}
	if l.md == nil || l.md.Look() != look {
		l.md = markdown.New(look)
		l.text.rendered = nil
	}
}

const (
	// narrowest is the narrowest terminal that is laid out for.
	narrowest = 20
	// widest is how long lines of text get: longer ones are hard to read.
	widest = 120
)

// settle draws at once where no frame will come.
func (l *Live) settle() {
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

// live are the lines that live, as they stand now.
func (l *Live) live() []string {
	now := l.cfg.Now()
	status := l.gauge.lines(l.cfg.Style, l.width-1, now, l.calls.running())
	if len(status) == 0 {
		return nil
	}
	calls := l.calls.lines(l.cfg.Style, l.width-1, now)
	room := l.height - 1 - len(status) - len(calls) - 3
	text := l.openText(room)
	var live []string
	prev := l.ended
	for _, part := range []struct {
		sort  sort
		lines []string
	}{{sortText, text}, {sortCall, calls}} {
		if len(part.lines) == 0 {
			continue
		}
		if apart(prev, part.sort) {
			live = append(live, "")
		}
		live = append(live, part.lines...)
		prev = part.sort
	}
	return append(append(live, ""), status...)
}

// apart says that a blank line stands between what one line tells of and another.
func apart(prev, next sort) bool {
	switch {
	case prev == sortNone || prev == sortHead:
		return false
	case next == sortHead || next == sortText || prev == sortText:
		return true
	}
	return false
}

// up hands finished lines to the next frame.
func (l *Live) up(what sort, lines ...string) {
	if len(lines) == 0 {
		return
	}
	if apart(l.ended, what) {
		l.above = append(l.above, "")
	}
	l.above, l.ended = append(l.above, lines...), what
}

// take hands up what the plain lines have become, broken at the width.
func (l *Live) take() {
	text := l.lines.b.String()
	l.lines.b.Reset()
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			l.up(sortLine, hang(line, l.width-1)...)
		}
	}
}

// hang breaks a line at spaces, and what goes on stands four columns in.
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
	return mend(lines)
}

// mend makes lines complete in themselves: a colour that goes on over a break ends
// before it and begins again behind it.
func mend(lines []string) []string {
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
