package render

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// PendingCall is a call that waits for an answer.
type PendingCall struct {
	Call *harnessv1.PendingCall
	// Run is the name of its run where calls of several runs are printed; else empty.
	Run string
	// Command is the command that answers it.
	Command string
	// Or has other answers that the command takes; may be empty.
	Or string
}

// PendingLines returns what a call waits for, why, until when, and the command that
// answers it. A call that a person decides about is there with all of its arguments. Lines are
// broken at Width; the command that answers never is, so that it can be copied.
func (s Style) PendingLines(w PendingCall, now time.Time) []string {
	p := w.Call
	var head string
	var whole, details []string
	switch p.GetKind() {
	case "question":
		text, options := Question(p)
		head = "asks: " + shorten(text, 1000)
		if q := p.GetQuestion(); q != nil { // with all that the person decides by
			head = "the server " + clean(q.GetServer()) + " asks, in its words:"
			for line := range strings.Lines(text) {
				whole = append(whole, strings.TrimSuffix(line, "\n"))
			}
		}
		for i, option := range options {
			details = append(details, fmt.Sprintf("[%d] %s", i+1, shorten(option, 300)))
		}
	case "approval":
		head = "waits for approval: " + content.Visible(p.GetTool())
		whole = s.indented(4).CallLines(p)
	case "review":
		head = "waits for a review: " + content.Visible(p.GetTool())
		whole = s.indented(4).CallLines(p)
	case "client_tool":
		head = "waits for its client: " + call(p.GetTool(), p.GetArguments())
	default:
		head = "waits (" + clean(p.GetKind()) + "): " + call(p.GetTool(), p.GetArguments())
	}
	if w.Run != "" {
		head = clean(w.Run) + " " + head
	}
	var facts []string
	if p.GetKind() != "question" && p.GetWhy() != "" {
		facts = append(facts, shorten(p.GetWhy(), 200))
	}
	facts = append(facts, "call "+clean(p.GetCallId()))
	if digest := p.GetPreview().GetDigest(); digest != "" {
		facts = append(facts, "digest "+clean(content.Cut(digest, shownDigest)))
	}
	if d := p.GetDeadline(); d != nil {
		facts = append(facts, expires(d.AsTime().Sub(now)))
	}
	details = append(details, strings.Join(facts, s.dot()))

	lines := s.wrap(head, 0, 4)
	for i := range lines {
		lines[i] = s.warn(lines[i])
	}
	for _, line := range whole {
		lines = append(lines, "    "+line)
	}
	for _, detail := range details {
		lines = append(lines, s.wrap(detail, 2, 4)...)
	}
	if w.Command != "" {
		lines = append(lines, "  "+w.Command)
	}
	if w.Or != "" {
		lines = append(lines, s.wrap("or "+w.Or, 2, 4)...)
	}
	return lines
}

// shownDigest is how many characters of a digest are printed. They are enough to name it.
const shownDigest = 12

// indented returns the style of lines that are indented by n runes.
func (s Style) indented(n int) Style {
	if s.Width > 0 {
		s.Width = max(s.Width-n, 1)
	}
	return s
}

// expires returns when a call without an answer gets an error as its answer.
func expires(left time.Duration) string {
	if left <= 0 {
		return "expired"
	}
	return "expires " + in(left)
}

// WakeLine returns when a run resumes by itself. It is empty if the run does not, or
// if its pending calls have the time.
func (s Style) WakeLine(r *harnessv1.HarnessResult, now time.Time) string {
	at := r.GetWakeAt()
	if at == nil || len(r.GetPending()) > 0 {
		return ""
	}
	left := at.AsTime().Sub(now)
	if left <= 0 {
		return "is about to resume"
	}
	return "resumes " + in(left)
}

// in returns a time to come with the precision that people need.
func in(left time.Duration) string {
	switch {
	case left >= 48*time.Hour:
		return fmt.Sprintf("in %d d", left/(24*time.Hour))
	case left >= 2*time.Hour:
		return fmt.Sprintf("in %d h", left/time.Hour)
	case left >= 2*time.Minute:
		return fmt.Sprintf("in %d min", left/time.Minute)
	}
	return fmt.Sprintf("in %d s", (left+time.Second-1)/time.Second)
}

// wrap breaks a text at spaces into lines of at most Width runes, if Width is set. The
// first is indented by first, the others by rest; a longer word has a separate line.
func (s Style) wrap(text string, first, rest int) []string {
	indent := strings.Repeat(" ", first)
	if s.Width <= 0 {
		return []string{indent + text}
	}
	var lines []string
	line, empty := indent, true
	for _, word := range strings.Split(text, " ") {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > s.Width {
			lines = append(lines, line)
			line, empty = strings.Repeat(" ", rest), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return append(lines, line)
}
