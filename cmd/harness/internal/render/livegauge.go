package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Initial is the state of a run before the events that are shown.
type Initial struct {
	// State is a state of the run, which has its limits; may be nil.
	State *harnessv1.Snapshot
	// Begun reports whether the events follow State, so that its usage counts.
	Begun bool
}

// gauges has the values of the status line.
type gauges struct {
	// Initial sets the values before the first event; see fill.
	Initial
	filled bool

	turn, maxTurns uint32
	calls          uint32
	usage          harnessv1.Usage
	window         harnessv1.TokenBudget
	// compacted counts the messages that the model does not see in full.
	compacted *harnessv1.ContextUsage
	// active is the time that the run worked until since; since is zero while the run
	// is parked or has ended.
	active time.Duration
	since  time.Time
	// doing is the activity of the run since at; until is when the next one starts, if
	// that is known.
	doing     string
	at, until time.Time
	// idle reports whether the run is parked or has ended: there is no status.
	idle bool
}

// fill applies the initial state.
func (g *gauges) fill() {
	if g.filled {
		return
	}
	g.filled = true
	s := g.State
	g.maxTurns = s.GetMaxTurns()
	g.window.MaxInputTokens = s.GetTokenBudget().GetMaxInputTokens()
	g.window.SoftTokens, g.window.BlockingTokens = s.GetTokenBudget().GetSoftTokens(), s.GetTokenBudget().GetBlockingTokens()
	g.idle = true
	if !g.Begun {
		return
	}
	g.turn, g.calls, g.window.UsedTokens = s.GetTurnCount(), s.GetSpent().GetToolCallsTotal(), s.GetTokenBudget().GetUsedTokens()
	g.add(s.GetSpent().GetUsage())
	g.active = s.GetSpent().GetActive().AsDuration()
}

func (g *gauges) add(u *harnessv1.Usage) {
	runstate.SumUsage(&g.usage, u)
}

// event applies an event.
func (g *gauges) event(e *harnessv1.Event, now time.Time) {
	g.fill()
	at := now
	if e.GetTime() != nil {
		at = e.GetTime().AsTime()
	}
	g.turn, g.maxTurns = max(g.turn, e.GetTurnNumber()), max(g.maxTurns, e.GetMaxTurns())
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_SessionPause, *harnessv1.Event_SessionComplete:
		g.pause(at)
		return
	case *harnessv1.Event_StepEnd:
		if v.StepEnd.GetOutcome() == "awaiting_tool" {
			g.pause(at)
			return
		}
		g.does("between turns", at)
	case *harnessv1.Event_SessionStart, *harnessv1.Event_SessionResume:
		g.does("getting ready", at)
	case *harnessv1.Event_StepStart, *harnessv1.Event_WorkerTakeover:
		g.does("thinking", at)
	case *harnessv1.Event_ModelRetry:
		if v.ModelRetry.GetAdjustment() != "" {
			g.does("thinking", at)
			break
		}
		g.does("model failed, tries again", at)
		g.until = at.Add(v.ModelRetry.GetWait().AsDuration())
	case *harnessv1.Event_ModelResponse:
		g.add(v.ModelResponse.GetUsage())
		g.does("calling tools", at)
		if v.ModelResponse.GetToolCalls() == 0 {
			g.does("finishing the turn", at)
		}
	case *harnessv1.Event_ToolResult:
		g.calls++
	case *harnessv1.Event_ToolError:
		g.calls++
	case *harnessv1.Event_ContextUsage:
		g.window.UsedTokens, g.window.MaxInputTokens = v.ContextUsage.GetUsedTokens(), v.ContextUsage.GetMaxInputTokens()
		g.compacted = v.ContextUsage
	case *harnessv1.Event_ContextPressure:
		g.window.UsedTokens, g.window.MaxInputTokens = v.ContextPressure.GetUsedTokens(), v.ContextPressure.GetMaxInputTokens()
	case *harnessv1.Event_CompactionStarted:
		if awaitsSummary(v.CompactionStarted) {
			g.does("waiting for a summary", at)
		}
	case *harnessv1.Event_CompactionCompleted:
		g.window.UsedTokens = v.CompactionCompleted.GetTokensAfter()
		g.does("between turns", at)
	case *harnessv1.Event_ExecutorMissing:
		g.does("waiting for executor "+clean(v.ExecutorMissing.GetExecutor()), at)
	}
}

func (g *gauges) does(what string, at time.Time) {
	g.doing, g.at, g.until, g.idle = what, at, time.Time{}, false
	if g.since.IsZero() {
		g.since = at
	}
}

// writes sets the activity when the model writes text, or else reasoning.
func (g *gauges) writes(text bool) {
	g.fill()
	g.doing, g.until, g.idle = "thinking", time.Time{}, false
	if text {
		g.doing = "writing"
	}
}

func (g *gauges) pause(at time.Time) {
	if !g.since.IsZero() {
		g.active += max(0, at.Sub(g.since))
	}
	g.since, g.idle = time.Time{}, true
}

// clock returns the time that the run has worked.
func (g *gauges) clock(now time.Time) time.Duration {
	if g.since.IsZero() {
		return g.active
	}
	return g.active + max(0, now.Sub(g.since))
}

// part is a part of the status line. If the parts do not fit, those with the highest
// order are left out first.
type part struct {
	text  string
	order int
}

// wide is the least width for a status of one line.
const wide = 100

// lines returns the status: one line if it fits, else two; none while the run is
// parked or has ended.
func (g *gauges) lines(s Style, width int, now time.Time, running int) []string {
	if g.idle || !g.filled {
		return nil
	}
	left, right := g.left(s, now, running), g.right(s, width, now)
	gap := "  "
	if width >= wide {
		if room := width - ansi.StringWidth(left) - 2; room > 0 {
			line := fit(right, gap+" ", room)
			return []string{left + strings.Repeat(" ", max(2, width-ansi.StringWidth(left)-ansi.StringWidth(line))) + line}
		}
	}
	lines := []string{ansi.Truncate(left, width, "")}
	if line := fit(right, gap, width-2); line != "" {
		lines = append(lines, "  "+line)
	}
	return lines
}

// left returns the turn and the activity.
func (g *gauges) left(s Style, now time.Time, running int) string {
	turn := "starting"
	if g.turn > 0 {
		turn = fmt.Sprintf("turn %d", g.turn)
		if g.maxTurns > 0 {
			turn += fmt.Sprintf("/%d", g.maxTurns)
		}
	}
	doing := g.doing
	if running > 0 {
		doing = "running " + plural(uint64(running), "tool")
	}
	if d := now.Sub(g.at); running == 0 && d >= time.Second {
		doing += " " + seconds(d)
	}
	if d := g.until.Sub(now); running == 0 && d > 0 {
		doing = g.doing + " in " + seconds(d+time.Second-1)
	}
	return s.good(s.spin(now)) + " " + s.bold(turn) + "  " + s.dim(doing)
}

func (g *gauges) right(s Style, width int, now time.Time) []part {
	budgets := g.State.GetConfig().GetBudgets()
	var parts []part
	if w := &g.window; w.GetMaxInputTokens() > 0 && w.GetUsedTokens() > 0 {
		parts = append(parts, part{s.context(w, width), 1})
	}
	if n := leftOut(g.compacted, width >= wide); n != "" {
		parts = append(parts, part{s.dim(n), 7})
	}
	calls := plural(uint64(g.calls), "call")
	if limit := budgets.GetToolCalls(); limit > 0 && width >= wide {
		calls = fmt.Sprintf("%d/%d calls", g.calls, limit)
	}
	parts = append(parts, part{s.against(calls, float64(g.calls), float64(budgets.GetToolCalls())), 4})
	in, out := g.usage.GetInputTokens(), g.usage.GetOutputTokens()
	if in+out > 0 {
		tokens := s.mark("↑", "in ") + brief(in) + " " + s.mark("↓", "out ") + brief(out)
		parts = append(parts, part{s.against(tokens, float64(in+out), float64(budgets.GetTokens())), 3})
	}
	if n := g.usage.GetReasoningTokens(); n > 0 {
		parts = append(parts, part{s.dim("thought " + brief(n)), 5})
	}
	if n := g.usage.GetCacheWriteTokens(); n > 0 {
		parts = append(parts, part{s.dim("cache +" + brief(n)), 6})
	}
	if cost := float64(g.usage.GetCostMicroUsd()) / 1e6; cost > 0 {
		text := money(cost)
		if limit := budgets.GetCostUsd(); limit > 0 {
			text += "/" + money(limit)
		}
		parts = append(parts, part{s.against(text, cost, budgets.GetCostUsd()), 2})
	}
	clock := g.clock(now)
	text := seconds(clock)
	limit := budgets.GetWallClock().AsDuration()
	if limit > 0 {
		text += "/" + seconds(limit)
	}
	return append(parts, part{s.against(text, clock.Seconds(), limit.Seconds()), 0})
}

// against colours the used part of a budget: as a warning from four fifths on, and as
// bad when it is used up. Without a limit it is dim.
func (s Style) against(text string, used, limit float64) string {
	switch {
	case limit <= 0 || used < 0.8*limit:
		return s.dim(text)
	case used < limit:
		return s.warn(text)
	}
	return s.bad(text)
}

// context returns how full the model's window is, with marks where compaction starts
// and where the turn waits for it.
func (s Style) context(w *harnessv1.TokenBudget, width int) string {
	used, limit := float64(w.GetUsedTokens()), float64(w.GetMaxInputTokens())
	paint := s.good
	switch {
	case w.GetBlockingTokens() > 0 && w.GetUsedTokens() >= w.GetBlockingTokens():
		paint = s.bad
	case w.GetSoftTokens() > 0 && w.GetUsedTokens() >= w.GetSoftTokens():
		paint = s.warn
	}
	percent := fmt.Sprintf("%d%%", int(100*used/limit))
	if width < 60 {
		return s.dim("ctx ") + paint(percent)
	}
	cells := 10
	if width >= wide {
		cells = 20
		percent += s.dim(fmt.Sprintf(" of %s", brief(uint64(w.GetMaxInputTokens()))))
	}
	full := min(cells, int(used/limit*float64(cells)+0.5))
	if full == 0 {
		full = 1
	}
	marks := map[int]bool{}
	for _, at := range []uint32{w.GetSoftTokens(), w.GetBlockingTokens()} {
		if at > 0 {
			marks[min(cells-1, int(float64(at)/limit*float64(cells)))] = true
		}
	}
	var rest strings.Builder
	for i := full; i < cells; i++ {
		if marks[i] {
			rest.WriteString(s.mark("┊", "|"))
		} else {
			rest.WriteString(s.mark("░", "."))
		}
	}
	return s.dim("context ") + paint(strings.Repeat(s.mark("█", "#"), full)) + s.dim(rest.String()) + " " + percent
}

// fit joins the parts that fit in a width.
func fit(parts []part, gap string, width int) string {
	for {
		var texts []string
		worst := 0
		for i, p := range parts {
			texts = append(texts, p.text)
			if p.order > parts[worst].order {
				worst = i
			}
		}
		line := strings.Join(texts, gap)
		if ansi.StringWidth(line) <= width || len(parts) == 0 {
			return line
		}
		parts = append(parts[:worst:worst], parts[worst+1:]...)
	}
}

// brief returns a number with about three digits.
func brief(n uint64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// money returns an amount of US dollars; small ones with more digits.
func money(usd float64) string {
	if usd < 1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
