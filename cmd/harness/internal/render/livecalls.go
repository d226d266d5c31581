package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

type callState int

const (
	callRuns callState = iota
	callAsks
	callWaits
	callDone
	callFailed
	callDenied
	callLeft
	// callDelegates is that of a call whose sub-agent works: its run is shown below it.
	callDelegates
)

// shownCall is a call on the terminal.
type shownCall struct {
	id, tool  string
	arguments *harnessv1.Content
	state     callState
	// since is when it started.
	since time.Time
	// took is how long it ran; negative if unknown.
	took time.Duration
	// said is the beginning of its result or error, or why it waits; last are the last lines
	// of a command that failed.
	said string
	last []string
	// output is what its command has printed so far.
	output callOutput
	// change has the arguments of a call that has written a file.
	change string
}

// calls has the live calls, in the order in which they were made, and those that wait
// for an answer, by id.
type calls struct {
	open  []*shownCall
	parks map[string]*shownCall
}

func (c *calls) find(id string) *shownCall {
	if at := slices.IndexFunc(c.open, func(s *shownCall) bool { return s.id == id }); at >= 0 {
		return c.open[at]
	}
	return nil
}

// start adds a call, or changes a waiting one to running.
func (c *calls) start(call *shownCall) {
	delete(c.parks, call.id)
	if old := c.find(call.id); old != nil {
		*old = *call
		return
	}
	c.open = append(c.open, call)
}

// end sets how a call ended. A call that is no longer shown is added again.
func (c *calls) end(id, tool string, how callState, took time.Duration, said string) {
	call := c.find(id)
	if call == nil {
		call = &shownCall{id: id, tool: tool}
		if parked := c.parks[id]; parked != nil {
			call.arguments = parked.arguments
			delete(c.parks, id)
		}
		c.open = append(c.open, call)
	}
	call.state, call.took, call.said = how, took, said
}

// park sets what a call waits for.
func (c *calls) park(call *shownCall) {
	if old := c.find(call.id); old != nil {
		*old = *call
	} else {
		c.open = append(c.open, call)
	}
	if c.parks == nil {
		c.parks = map[string]*shownCall{}
	}
	c.parks[call.id] = call
}

func (c *calls) running() int {
	n := 0
	for _, call := range c.open {
		if call.state == callRuns {
			n++
		}
	}
	return n
}

// over removes and returns the calls that have ended, up to the first one that has
// not, so that calls go up in the order in which they were made; all removes all.
func (c *calls) over(all bool) []*shownCall {
	n := 0
	for n < len(c.open) && (all || c.open[n].state >= callDone) {
		n++
	}
	over := c.open[:n]
	c.open = slices.Clone(c.open[n:])
	for _, call := range over {
		if call.state == callRuns {
			call.state, call.took = callLeft, -1
		}
	}
	return over
}

// shownCalls bounds the live calls, in lines.
const shownCalls = 8

func (c *calls) lines(s Style, width int, now time.Time) []string {
	var lines []string
	for i, call := range c.open {
		if i == shownCalls && len(c.open) > shownCalls+1 {
			return append(lines, s.dim(fmt.Sprintf("  %s %d more calls", s.mark("…", "..."), len(c.open)-i)))
		}
		lines = append(lines, s.callLine(call, width, now))
		if call.state == callRuns {
			lines = append(lines, call.output.lines(s, width)...)
		}
	}
	return lines
}

// spin returns the frame of a spinner at a time.
func (s Style) spin(now time.Time) string {
	frames := []string{"|", "/", "-", "\\"}
	if s.UTF8 {
		frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	}
	return frames[int(now.UnixMilli()/100)%len(frames)]
}

// callLine returns a call on one line of at most width columns: its state, its
// arguments, its duration, and the first line of its result.
func (s Style) callLine(c *shownCall, width int, now time.Time) string {
	mark, took, said := "", "", shorten(firstLine(c.said), 400)
	if c.state >= callDone && measurable(c.took) {
		took = span(c.took)
	}
	paint := s.dim
	switch c.state {
	case callRuns:
		mark = s.warn(s.spin(now))
		if d := now.Sub(c.since); d >= time.Second && !c.since.IsZero() {
			took = seconds(d)
		}
	case callAsks:
		mark, paint = s.warn("?"), s.warn
	case callWaits:
		mark = s.mark("○", "o")
	case callDelegates:
		mark = s.arrow()
	case callDone:
		mark = s.good(s.tick())
	case callFailed:
		mark, paint = s.bad(s.cross()), s.bad
	case callDenied:
		mark, paint = s.bad(s.mark("⊘", "x")), s.bad
		if c.said != "" {
			said = "denied: " + said
		} else {
			said = "denied"
		}
	case callLeft:
		mark, said = s.dim(s.mark("–", "-")), "continues"
	}
	tool := shorten(c.tool, 40)
	line := "  " + mark + " " + s.bold(tool)
	if took != "" {
		took = "  " + took
	}
	room := width - ansi.StringWidth(line) - ansi.StringWidth(took)
	// The result gets the room that the arguments leave, and at least a third.
	args := arguments(c.arguments)
	if path := pathOf(c.tool, c.arguments); path != "" {
		args = path // the texts are shown below, or by the prompt
	}
	forSaid := 0
	if said != "" {
		forSaid = min(ansi.StringWidth(said)+2, max(room/3, room-ansi.StringWidth(args)-1))
	}
	if args = middle(args, room-forSaid-1, s.mark("…", "...")); args != "" {
		line += " " + args
	}
	line += s.dim(took)
	if rest := width - ansi.StringWidth(line) - 2; said != "" && rest >= min(8, ansi.StringWidth(said)) {
		line += "  " + paint(ansi.Truncate(said, rest, s.mark("…", "...")))
	}
	return ansi.Truncate(line, width, "")
}

// narrow is the width below which the line of a call has no room for its error.
const narrow = 60

// callLines returns a call that has ended: its line and, if that has no room for the
// error, a line with the error.
func (s Style) callLines(c *shownCall, width int, now time.Time) []string {
	lines := []string{s.callLine(c, width, now)}
	if path := pathOf(c.tool, c.arguments); path != "" && !strings.Contains(ansi.Strip(lines[0]), path) {
		bare := *c
		bare.arguments = nil
		lines = append([]string{s.callLine(&bare, width, now)}, indentedPath(path, width)...)
	}
	if c.state == callDone {
		lines = append(lines, s.changeLines(c.tool, c.change, width)...)
	}
	if said := shorten(firstLine(c.said), 400); width < narrow && said != "" && (c.state == callFailed || c.state == callDenied || c.state == callAsks) {
		bare := *c
		bare.said = ""
		lines[0] = s.callLine(&bare, width, now)
		lines = append(lines, "    "+s.bad(ansi.Truncate(said, width-4, s.mark("…", "..."))))
	}
	return append(lines, s.failureLines(c.last, width)...)
}

// indentedPath returns a path below the line of its call, broken where a line ends.
func indentedPath(path string, width int) []string {
	lines := strings.Split(ansi.Hardwrap(path, max(width-4, narrowest/2), true), "\n")
	for i := range lines {
		lines[i] = "    " + lines[i]
	}
	return lines
}

// arguments returns the arguments of a call on one line. A single string is returned
// without its name.
func arguments(c *harnessv1.Content) string {
	raw := preview(c)
	var fields map[string]json.RawMessage
	var text string
	if json.Unmarshal([]byte(raw), &fields) == nil && len(fields) == 1 {
		for _, value := range fields {
			if json.Unmarshal(value, &text) == nil {
				return shorten(text, 400)
			}
		}
	}
	if raw == "" || raw == "{}" {
		return ""
	}
	return short(raw)
}

// middle shortens text to at most width columns. It removes the middle, because the
// end of a path or a command matters as much as its beginning.
func middle(text string, width int, gap string) string {
	have, cut := ansi.StringWidth(text), ansi.StringWidth(gap)
	switch {
	case have <= width:
		return text
	case width < 8:
		return ""
	}
	head := (width - cut + 1) / 2
	return ansi.Truncate(text, head, "") + gap + ansi.TruncateLeft(text, have-(width-cut-head), "")
}

// seconds returns a growing duration in whole seconds, so that it does not flicker.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.Truncate(time.Second).String()
}
