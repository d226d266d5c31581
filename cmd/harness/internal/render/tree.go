package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Tree shows a run and, nested in it, the runs of its sub-agents. Each of their lines is
// indented by the depth of its run and begins with the name of its sub-agent, because runs
// work side by side. Their text is shown once it is complete.
type Tree struct {
	// Root shows the run; its other methods apply to the run alone.
	Root
	style Style
	fetch func(run string) func(*harnessv1.Content) string
	// branches are the runs below that were seen, by id.
	branches map[string]*branch
	// named counts the runs of each sub-agent.
	named map[string]int
}

// Root shows a run for people: a Text or a Live.
type Root interface {
	Event(e *harnessv1.Event)
	Delta(d *harnessv1.Delta)
	Remark(text string)
	Asking(asking bool)
	Err() error
	Header(run, model, workspace, goal string)
	Lines(lines ...string)
	Result(r *harnessv1.HarnessResult)
	Shown() string
	Close()

	// nest returns what shows a run below, after a lead on each line.
	nest(lead string, fetch func(*harnessv1.Content) string) nest
	// nested shows lines of a run below.
	nested(lead string, lines []string)
	// leave removes what shows a run below.
	leave(n nest)
}

// nest shows one run below.
type nest interface {
	// event takes an event and returns the lines to show.
	event(e *harnessv1.Event) []string
	// delta takes a piece of text that is not complete.
	delta(d *harnessv1.Delta)
	// finish returns the lines of the open text and calls.
	finish() []string
}

// branch is a run below.
type branch struct {
	run, lead string
	shows     nest
	open      bool
	// waits reports that a call of the current turn waits for a user.
	waits bool
}

// NewTree returns a Tree. fetch returns what returns the whole text of a content of a run.
func NewTree(root Root, style Style, fetch func(run string) func(*harnessv1.Content) string) *Tree {
	return &Tree{Root: root, style: style, fetch: fetch, branches: map[string]*branch{}, named: map[string]int{}}
}

// Event shows an event of the run or of a run below.
func (t *Tree) Event(e *harnessv1.Event) {
	if e.GetRunId() == "" {
		t.Root.Event(e)
	} else {
		b := t.at(e.GetRunId(), e.GetAgent(), e.GetDepth())
		t.show(b, b.shows.event(e))
		b.waits = b.waits || waits(e)
		if b.waits && e.GetStepEnd() != nil {
			t.show(b, []string{t.style.dim("  waits in run " + clean(b.run))})
			b.waits = false
		}
	}
	if started := e.GetAgentStarted(); started != nil {
		t.started(started, e.GetDepth()+1)
	}
	if waiting := e.GetAgentWaiting(); waiting != nil {
		t.waiting(waiting)
	}
	if ended := e.GetAgentEnded(); ended != nil {
		t.ended(ended)
	}
}

// Delta takes a piece of text of the run or of a run below.
func (t *Tree) Delta(d *harnessv1.Delta) {
	if d.GetRunId() == "" {
		t.Root.Delta(d)
	} else if b := t.branches[d.GetRunId()]; b != nil && b.open {
		b.shows.delta(d)
	}
}

// Close shows what is open and ends the display.
func (t *Tree) Close() {
	for _, b := range t.branches {
		if b.open {
			t.close(b)
		}
	}
	t.Root.Close()
}

// waits reports whether a user can answer what an event announces.
func waits(e *harnessv1.Event) bool {
	awaits := e.GetToolCall().GetAwaits()
	return awaits == "question" || awaits == "client_tool" || e.GetApprovalRequested() != nil
}

// shownName is the maximum width of the name of a sub-agent, in columns.
const shownName = 24

// at returns the branch of a run, opened if it was not.
func (t *Tree) at(run, agent string, depth uint32) *branch {
	b := t.branches[run]
	if b == nil {
		name := ansi.Truncate(clean(agent), shownName, t.style.mark("…", "..."))
		if t.named[agent]++; t.named[agent] > 1 {
			name += fmt.Sprintf(" %d", t.named[agent])
		}
		b = &branch{run: run, lead: strings.Repeat("  ", int(depth)) + t.style.bold(name) + " " + t.style.dim(t.style.mark("│", "|")) + " "}
		t.branches[run] = b
	}
	if !b.open {
		b.open, b.shows = true, t.nest(b.lead, t.fetch(run))
	}
	return b
}

func (t *Tree) show(b *branch, lines []string) {
	if len(lines) > 0 {
		t.nested(b.lead, lines)
	}
}

func (t *Tree) started(s *harnessv1.AgentStarted, depth uint32) {
	b := t.at(s.GetRunId(), s.GetAgent(), depth)
	what := "starts"
	if s.GetContinued() {
		what = "continues"
	}
	if s.GetBackground() {
		what += " in the background"
	}
	t.show(b, []string{t.style.dim(what + ", run " + clean(b.run))})
}

// waiting shows why a sub-agent waits, unless its events have shown what it waits for.
func (t *Tree) waiting(e *harnessv1.AgentWaiting) {
	b := t.branches[e.GetRunId()]
	if b == nil || !b.open || e.GetReason().GetDetails().GetRunId() != "" {
		return
	}
	switch e.GetReason().GetKind() {
	case "approval", "client_tool", "question":
	default:
		t.show(b, []string{t.style.dim("waits: " + clean(e.GetReason().GetMessage()))})
	}
}

func (t *Tree) ended(e *harnessv1.AgentEnded) {
	b := t.branches[e.GetRunId()]
	if b == nil || !b.open {
		return
	}
	t.close(b)
	status := StatusName(e.GetStatus())
	switch {
	case e.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE && e.GetAccepted():
		status = t.style.good(t.style.tick() + " " + status)
	case e.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE:
		status = t.style.warn(status + " (not accepted)")
	default:
		status = t.style.bad(t.style.cross() + " " + status)
		if words := ReasonWords(e.GetReason().GetKind()); words != "" {
			status += t.style.dot() + words
		}
	}
	facts := []string{status, plural(uint64(e.GetTurns()), "turn"), plural(runstate.TotalTokens(e.GetUsage()), "token")}
	if cost := e.GetUsage().GetCostMicroUsd(); cost > 0 {
		facts = append(facts, fmt.Sprintf("$%.4f", float64(cost)/1e6))
	}
	t.show(b, []string{strings.Join(facts, t.style.dot())})
}

// close shows what is open of a run below.
func (t *Tree) close(b *branch) {
	t.show(b, b.shows.finish())
	t.leave(b.shows)
	b.open = false
}

// led returns lines of at most width columns, each after a lead. Long words are not broken.
func led(lead string, lines []string, width int) []string {
	var out []string
	room := max(width-ansi.StringWidth(lead), narrowest)
	for _, line := range lines {
		parts := []string{line}
		if width > 0 {
			parts = hang(line, room)
		}
		for _, part := range parts {
			out = append(out, strings.TrimRight(lead+part, " "))
		}
	}
	return out
}

// nestText shows a run below line by line.
type nestText struct {
	text  *Text
	lines *lineBuffer
}

func (t *Text) nest(_ string, fetch func(*harnessv1.Content) string) nest {
	n := &nestText{lines: &lineBuffer{}}
	style := t.style
	style.Terminal = false
	n.text = NewText(n.lines, style, fetch)
	n.text.head = func(turn, limit uint32) { n.text.line(style.bold(turnTitle(turn, limit))) }
	return n
}

func (t *Text) nested(lead string, lines []string) {
	t.Lines(led(lead, lines, max(t.style.Width-1, 0))...)
}

func (t *Text) leave(nest) {}

func (n *nestText) event(e *harnessv1.Event) []string {
	n.text.Event(e)
	return n.lines.take()
}

func (n *nestText) delta(*harnessv1.Delta) {}

func (n *nestText) finish() []string {
	n.text.endText()
	n.text.Lines(n.text.work.flush(n.text.style)...)
	return n.lines.take()
}

// nestLive shows a run below: its finished lines go up with those of the run, and a live
// line has what it does.
type nestLive struct {
	lead string
	live *Live
}

func (l *Live) nest(lead string, fetch func(*harnessv1.Content) string) nest {
	cfg := l.cfg
	cfg.Still, cfg.Fetch, cfg.Initial = true, fetch, Initial{}
	size := l.cfg.Size
	cfg.Size = func() (int, int) {
		width, height := size()
		return width - ansi.StringWidth(lead), height
	}
	n := &nestLive{lead: lead, live: newLive(cfg)}
	n.live.below = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nests = append(l.nests, n)
	return n
}

func (l *Live) nested(lead string, lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up(sortLine, led(lead, lines, l.width-1)...)
	l.drawIfIdle()
}

func (l *Live) leave(n nest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nests = slices.DeleteFunc(l.nests, func(o *nestLive) bool { return o == n })
}

func (n *nestLive) event(e *harnessv1.Event) []string {
	n.live.mu.Lock()
	n.live.measure()
	n.live.mu.Unlock()
	n.live.Event(e)
	return n.take(false)
}

func (n *nestLive) delta(d *harnessv1.Delta) {
	n.live.mu.Lock()
	defer n.live.mu.Unlock()
	if d.GetToolOutput() == nil && d.GetAlert() == nil {
		n.live.gauge.writes(d.GetText() != "")
	}
}

func (n *nestLive) finish() []string { return n.take(true) }

// take removes and returns the finished lines; all adds those of the open text and calls.
func (n *nestLive) take(all bool) []string {
	l := n.live
	l.mu.Lock()
	defer l.mu.Unlock()
	if all {
		l.plain.Lines(l.plain.work.flush(l.cfg.Style)...)
		l.take()
		l.endAnswer()
		l.flush(true)
	}
	lines := l.above
	l.above = nil
	return lines
}

// shownNests bounds the live lines of runs below.
const shownNests = 8

// nestLines returns a line for each run below that works.
func (l *Live) nestLines() []string {
	var lines []string
	s, now, left := l.cfg.Style, l.cfg.Now(), 0
	for _, n := range l.nests {
		n.live.mu.Lock()
		text := ""
		if g := &n.live.gauge; !g.idle && g.filled {
			text = g.left(s, now, n.live.calls.running())
			if at := slices.IndexFunc(n.live.calls.open, func(c *shownCall) bool { return c.state == callRuns }); at >= 0 && n.live.calls.running() == 1 {
				text = strings.TrimLeft(s.callLine(n.live.calls.open[at], l.width-1-ansi.StringWidth(n.lead), now), " ")
			}
		}
		n.live.mu.Unlock()
		switch {
		case text == "":
		case len(lines) == shownNests:
			left++
		default:
			lines = append(lines, ansi.Truncate(n.lead+text, l.width-1, s.mark("…", "...")))
		}
	}
	if left > 0 {
		lines = append(lines, s.dim(fmt.Sprintf("  %s %d more sub-agents", s.mark("…", "..."), left)))
	}
	return lines
}
