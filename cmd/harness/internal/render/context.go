package render

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ContextTable prints what a model was sent at a version of a run, or would be sent: a
// line for each message, page by page.
type ContextTable struct {
	style Style
	width int
	// page is the first one.
	page *harnessv1.GetContextResponse
	// done counts the messages of the pages by action.
	done   map[harnessv1.CompactionAction]*contextTotal
	digest *bool
}

// contextTotal sums up messages.
type contextTotal struct {
	messages         int
	tokens, original uint64
}

// unlimited is the width of a table for no terminal.
const unlimited = 140

// NewContextTable returns a table that begins with a page.
func NewContextTable(style Style, first *harnessv1.GetContextResponse) *ContextTable {
	t := &ContextTable{style: style, width: style.Width - 1, page: first, done: map[harnessv1.CompactionAction]*contextTotal{}}
	if style.Width == 0 {
		t.width = unlimited
	}
	return t
}

// Head returns the lines before the messages: how full the window is, and the plan. newest
// is true if the version is the newest one.
func (t *ContextTable) Head(run string, newest bool) []string {
	s, p := t.style, t.page
	what := ""
	switch {
	case len(p.GetViewDigest()) > 0:
		what = ": what the model was sent"
	case newest:
		what = ": what the model would be sent next"
	}
	lines := []string{
		field("run", clean(run)),
		field("version", fmt.Sprint(p.GetVersion())+what),
		field("model", clean(p.GetModel())),
		field("window", t.window()),
	}
	if p.GetToolTokens() > 0 {
		lines = append(lines, field("tools", count(uint64(p.GetToolTokens()))+" tokens of these"))
	}
	for i, r := range p.GetPlan() {
		name := ""
		if i == 0 {
			name = "plan"
		}
		lines = append(lines, t.cut(field(name, s.rangeText(r))))
	}
	return append(lines, "")
}

// field returns a line of a head, as other verbs print them.
func field(name, value string) string { return fmt.Sprintf("%-11s %s", name, value) }

// window returns how full the window is.
func (t *ContextTable) window() string {
	s, p := t.style, t.page
	used, limit := uint64(p.GetUsedTokens()), uint64(p.GetMaxInputTokens())
	if limit == 0 {
		return count(used) + " tokens"
	}
	share := float64(used) / float64(limit)
	text := fmt.Sprintf("%s of %s tokens, %d%%", count(used), count(limit), int(100*share))
	cells := min(40, t.width-ansi.StringWidth(field("", ""))-2-len(text))
	if cells < 5 {
		return text
	}
	full := min(cells, int(share*float64(cells)+0.5))
	paint := s.good
	if share >= 1 {
		paint = s.bad
	}
	return paint(strings.Repeat(s.mark("█", "#"), full)) + s.dim(strings.Repeat(s.mark("░", "."), cells-full)) + "  " + text
}

// rangeText returns a range of a plan on one line.
func (s Style) rangeText(r *harnessv1.PlanRange) string {
	span := fmt.Sprintf("m%d", r.GetFirstMessage())
	if r.GetLastMessage() != r.GetFirstMessage() {
		span += fmt.Sprintf("-m%d", r.GetLastMessage())
	}
	line := fmt.Sprintf("%-12s %-13s %s", actionName(r.GetAction()), span, classText(r.GetClass(), uint64(r.GetMessages())))
	if r.GetVersion() > 0 {
		line += s.dim(fmt.Sprintf("  pass at version %d", r.GetVersion()))
	}
	return line
}

// actionName returns an action as a participle, such as "cleared".
func actionName(a harnessv1.CompactionAction) string {
	switch a {
	case harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR:
		return "cleared"
	case harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE:
		return "externalised"
	case harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE:
		return "summarised"
	case harnessv1.CompactionAction_COMPACTION_ACTION_DROP:
		return "dropped"
	case harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN:
		return "shortened"
	default:
		return "in full"
	}
}

// classText returns a number of messages of a class.
func classText(class harnessv1.MessageClass, n uint64) string {
	switch class {
	case harnessv1.MessageClass_MESSAGE_CLASS_EPHEMERAL, harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE, harnessv1.MessageClass_MESSAGE_CLASS_ANCHORING:
		return plural(n, strings.ToLower(strings.TrimPrefix(class.String(), "MESSAGE_CLASS_"))+" result")
	case harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE:
		return plural(n, "non-replayable result")
	case harnessv1.MessageClass_MESSAGE_CLASS_RESULT:
		return plural(n, "result")
	case harnessv1.MessageClass_MESSAGE_CLASS_REPLACED_GUIDANCE:
		return plural(n, "replaced guidance message")
	case harnessv1.MessageClass_MESSAGE_CLASS_ASSISTANT:
		return plural(n, "message") + " of the model"
	case harnessv1.MessageClass_MESSAGE_CLASS_USER, harnessv1.MessageClass_MESSAGE_CLASS_OLD_USER:
		return plural(n, "message") + " of the user"
	case harnessv1.MessageClass_MESSAGE_CLASS_MEDIA:
		return plural(n, "message") + " with images or documents"
	default:
		return plural(n, "message")
	}
}

// Widths of columns.
const (
	refCells  = 10
	turnCells = 4
	nowCells  = 7
	wasCells  = 9
	barCells  = 8
)

// authorCells returns the width of the column with the author of a message and its tool.
func (t *ContextTable) authorCells() int { return max(12, min(28, t.width*3/10)) }

// Columns returns the names of the columns.
func (t *ContextTable) Columns() string {
	bar := ""
	if t.width >= wide {
		bar = strings.Repeat(" ", barCells+1)
	}
	names := fmt.Sprintf("%-*s %*s  %-*s %*s ", refCells, "message", turnCells, "turn", t.authorCells(), "what", nowCells, "tokens")
	return t.style.dim(t.cut(names + fmt.Sprintf("%s%-*s %s", bar, wasCells, "of", "how it is shown, or its text")))
}

// Lines returns the lines of the messages of a page, and counts them.
func (t *ContextTable) Lines(page *harnessv1.GetContextResponse) []string {
	if page.DigestMatches != nil {
		t.digest = page.DigestMatches
	}
	lines := make([]string, 0, len(page.GetItems()))
	for _, i := range page.GetItems() {
		total := t.done[i.GetAction()]
		if total == nil {
			total = &contextTotal{}
			t.done[i.GetAction()] = total
		}
		total.messages++
		total.tokens += uint64(i.GetTokens())
		total.original += uint64(max(i.GetOriginalTokens(), i.GetTokens()))
		lines = append(lines, t.item(i))
	}
	return lines
}

// item returns the line of a message.
func (t *ContextTable) item(i *harnessv1.ContextItem) string {
	s := t.style
	turn := ""
	if i.GetTurnNumber() > 0 {
		turn = fmt.Sprint(i.GetTurnNumber())
	}
	was := ""
	if i.GetOriginalTokens() > i.GetTokens() {
		was = "of " + brief(uint64(i.GetOriginalTokens()))
	}
	line := fmt.Sprintf("%-*s %s  ", refCells, spanOf(i), s.dim(fmt.Sprintf("%*s", turnCells, turn)))
	line += pad(s.author(i, t.authorCells()), t.authorCells()) + fmt.Sprintf(" %*s ", nowCells, count(uint64(i.GetTokens())))
	if t.width >= wide {
		line += s.dim(pad(s.weightBar(i.GetTokens(), t.page.GetMaxInputTokens()), barCells)) + " "
	}
	line += s.dim(fmt.Sprintf("%-*s ", wasCells, was))
	room := max(t.width-ansi.StringWidth(line), 1)
	if i.GetReason() != "" {
		return line + s.paintAction(i.GetAction(), ansi.Truncate(shorten(i.GetReason(), 300), room, s.mark("…", "...")))
	}
	return line + s.dim(ansi.Truncate(shorten(i.GetText(), 300), room, s.mark("…", "...")))
}

func (t *ContextTable) cut(line string) string {
	return ansi.Truncate(line, t.width, t.style.mark("…", "..."))
}

// pad fills up a text that may have colours.
func pad(text string, cells int) string {
	return text + strings.Repeat(" ", max(0, cells-ansi.StringWidth(text)))
}

func spanOf(i *harnessv1.ContextItem) string {
	switch {
	case i.GetFirstMessage() == 0:
		return "-"
	case i.GetFirstMessage() == i.GetLastMessage():
		return fmt.Sprintf("m%d", i.GetFirstMessage())
	}
	return fmt.Sprintf("m%d-m%d", i.GetFirstMessage(), i.GetLastMessage())
}

// author returns the author of a message, its kind, and the tools that it calls or that it
// is the result of.
func (s Style) author(i *harnessv1.ContextItem, cells int) string {
	var text string
	switch i.GetRole() {
	case harnessv1.Role_ROLE_SYSTEM:
		text = s.bold("system")
	case harnessv1.Role_ROLE_TOOL:
		text = "  " + clean(i.GetToolName())
		if i.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_REPAIR {
			text += " (repair)"
		}
	case harnessv1.Role_ROLE_ASSISTANT:
		text = s.bold("model")
		if calls := i.GetCalls(); len(calls) > 0 {
			text += " " + s.arrow() + " " + clean(calls[0])
			if len(calls) > 1 {
				text += fmt.Sprintf(" +%d", len(calls)-1)
			}
		}
	default:
		text = s.kindName(i)
	}
	return ansi.Truncate(text, cells, s.mark("…", "..."))
}

// kindName returns what a message of the user's role is.
func (s Style) kindName(i *harnessv1.ContextItem) string {
	switch i.GetKind() {
	case harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE:
		if i.GetAction() == harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE {
			return "summary"
		}
		return "guidance"
	case harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION:
		return "reminder"
	case harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED:
		return "stop rejected"
	case harnessv1.MessageKind_MESSAGE_KIND_ANSWER:
		return s.bold("user") + " (answer)"
	default:
		return s.bold("user")
	}
}

// fullBar is the part of the window that fills the bar of a message: an eighth, which is
// also the most that a result is shown with.
const fullBar = 8

// weightBar returns a bar for the tokens of a message.
func (s Style) weightBar(tokens, window uint32) string {
	if window == 0 {
		return ""
	}
	eighths := int(min(8*barCells, uint64(tokens)*fullBar*8*barCells/uint64(window)))
	if eighths == 0 {
		return ""
	}
	if !s.UTF8 {
		return strings.Repeat("#", (eighths+7)/8)
	}
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar
}

func (s Style) paintAction(a harnessv1.CompactionAction, text string) string {
	switch a {
	case harnessv1.CompactionAction_COMPACTION_ACTION_UNSPECIFIED:
		return text
	case harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE, harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE:
		return s.good(text)
	default:
		return s.warn(text)
	}
}

// Foot returns the lines after the messages: sums by action, and whether the messages are
// those that were sent.
func (t *ContextTable) Foot() []string {
	s := t.style
	if len(t.done) == 0 {
		return []string{"no messages"}
	}
	lines := []string{""}
	all := contextTotal{}
	row := func(name string, sum contextTotal) string {
		line := fmt.Sprintf("%-12s %7s  %9s tokens", name, count(uint64(sum.messages)), count(sum.tokens)) //nolint:gosec // a count
		if sum.original > sum.tokens {
			line += s.dim(" of " + count(sum.original))
		}
		return line
	}
	for _, a := range []harnessv1.CompactionAction{
		harnessv1.CompactionAction_COMPACTION_ACTION_UNSPECIFIED, harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR,
		harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE, harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN,
		harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE, harnessv1.CompactionAction_COMPACTION_ACTION_DROP,
	} {
		if sum := t.done[a]; sum != nil {
			lines = append(lines, row(actionName(a), *sum))
			all.messages, all.tokens, all.original = all.messages+sum.messages, all.tokens+sum.tokens, all.original+sum.original
		}
	}
	if len(t.done) > 1 {
		lines = append(lines, row("all", all))
	}
	switch {
	case t.digest == nil:
	case *t.digest:
		lines = append(lines, "", s.good(s.tick())+" these messages are the request, by its recorded digest")
	default:
		lines = append(lines, "", s.bad(s.cross()+" these messages are not the request, by its recorded digest"))
	}
	return lines
}
