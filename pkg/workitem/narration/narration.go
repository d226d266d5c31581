// Package narration recognises narration in artifacts: words that announce, introduce
// or report on the product and are no part of it. Check is pure. It never fails: a
// text in a language that it does not know is clean.
package narration

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// Level is how much of an artifact is narration: words that announce it, introduce
// it or report on it, and that are no part of it.
type Level int

const (
	// Clean has no narration.
	Clean Level = iota
	// Light has up to three lines of it before or after the content.
	Light
	// Heavy has more, has it between the content, or has nothing else.
	Heavy
)

func (l Level) String() string { return [...]string{"CLEAN", "LIGHT", "HEAVY"}[l] }

const (
	// window is the number of lines at each end are looked at; blank ones do not count.
	window = 5
	// maxStripped is the number of lines may be stripped.
	maxStripped = 3
	// maxQuoted bounds a line that a reason quotes, in bytes.
	maxQuoted = 80
)

// Check finds narration in the first and last lines of an artifact, and lines within its
// content that report on the work, in English, German, French and Spanish. stripped is
// the text to store: content itself if it is CLEAN, content without its narration and
// blank edges if it is LIGHT, and empty if it is HEAVY. why names the lines; it is empty
// if the content is CLEAN.
//
// Words alone do not decide: "Let me know if Tuesday suits you" belongs at the end of a
// letter, but not of a report. A line counts by what it says about the artifact, by its
// position, and by the rest of the text: a letter may address its reader between
// salutation and signature, and a text in the first person may start and end with it.
func Check(content string) (level Level, stripped, why string) {
	d := readDocument(content)
	head, tail := d.ends()
	if d.extendRegister(head, tail) {
		head, tail = d.ends()
	}
	if head+tail == len(d.order) && head+tail > 0 && !d.strong() {
		return Clean, content, "" // each line may be content, and there is no other
	}
	if head+tail > 0 && d.emptied(head, tail) {
		return Clean, content, "" // a text that mentions its writer throughout
	}
	if head+tail == len(d.order) && head+tail > 0 {
		return Heavy, "", "it is nothing but " + d.quote(0, head+tail) + ", which speaks of a product and is none"
	}
	if at := d.amid(head, len(d.order)-tail); at >= 0 {
		return Heavy, "", d.quote(at, at+1) + " speaks of the work between the content"
	}
	switch lines := head + tail; {
	case lines == 0:
		return Clean, content, ""
	case lines > maxStripped:
		return Heavy, "", fmt.Sprintf("%s speak of the artifact instead of being part of it", d.quoteEnds(head, tail))
	}
	return Light, d.without(head, tail), d.quoteEnds(head, tail)
}

// ends is the number of lines at the head and at the tail are narration.
func (d *document) ends() (head, tail int) {
	if head = d.leading(); head < len(d.order) {
		tail = d.trailing(head)
	}
	return head, tail
}

// emptied reports whether nothing but titles would be left of the content, or less than is
// removed without a line that is about an artifact for certain.
func (d *document) emptied(head, tail int) bool {
	left, removed, sure := 0, 0, d.program || d.tabular || d.fences > 0
	for n := range d.order {
		switch l := d.at(n); {
		case n < head || n >= len(d.order)-tail:
			removed += len(l.raw)
			sure = sure || l.says.weight == certain
		case l.kind != heading && l.kind != rule:
			left += len(l.raw)
		}
	}
	return left > 0 && left < removed && !sure || left == 0 && head+tail > 1 && head+tail < len(d.order)
}

// strong reports whether half of the lines are about an artifact for certain.
func (d *document) strong() bool {
	count := 0
	for n := range d.order {
		if says := d.at(n).says; says.weight == certain || len(d.order) == 1 && says.first.has(signWill|signLook) && says.has(signMe) {
			count++
		}
	}
	return count*2 >= len(d.order)
}

// leading is the number of lines at the head, blank ones not counted, are narration.
func (d *document) leading() int {
	if n := d.structured(true); n > 0 {
		return n
	}
	n := d.prefaced()
	for n < min(len(d.order), window) {
		switch {
		case d.accept(n, atHead):
			n++
		case n > 0 && d.continues(n):
			n++
		default:
			return n
		}
	}
	return n
}

// trailing is the number of lines at the tail are narration, when the first head lines
// are.
func (d *document) trailing(head int) int {
	if n := d.structured(false); n > 0 && n < len(d.order)-head {
		return n
	}
	for n := max(head, len(d.order)-window); n < len(d.order); n++ {
		if n == 0 && d.at(n).says.weight < certain {
			continue // a line that may be content is content when there is no other
		}
		if d.accept(n, atTail) && d.narratesOn(n) {
			return len(d.order) - n
		}
	}
	return 0
}

// narratesOn reports whether from the narration in line n on all is narration.
func (d *document) narratesOn(n int) bool {
	list := strings.HasSuffix(d.at(n).bare, ":") || d.boldTitle(n)
	for n++; n < len(d.order); n++ {
		l := d.at(n)
		switch {
		case l.kind == rule, d.accept(n, atTail):
		case list && l.kind == item:
		case d.continues(n):
		case l.kind == prose && !l.protected && anaphor.matchString(l.plain):
		default:
			return false
		}
	}
	return true
}

// continues reports whether line n belongs to the sentence or the paragraph of narration in
// the line before it.
func (d *document) continues(n int) bool {
	before, l := d.at(n-1), d.at(n)
	if l.kind != prose || l.protected || !d.sameParagraph(n) {
		return false
	}
	return !sentence(before.bare) || !strings.HasSuffix(before.bare, ":") && anaphor.matchString(l.plain)
}

// amid returns the first line of narration within the content from line from to line
// to; -1 if there is none.
func (d *document) amid(from, to int) int {
	for n := from; n < to; n++ {
		if d.interrupts(n) {
			return n
		}
		if d.mixed(n, from, to) {
			return n
		}
	}
	return -1
}

// without returns the content without head and tail lines, blank edges, and the rules
// that separate them.
func (d *document) without(head, tail int) string {
	from, to := 0, len(d.lines)
	if head > 0 {
		for from = d.order[head-1] + 1; head < len(d.order)-1 && d.at(head).kind == rule && !d.frontMatter(head); head++ {
			from = d.order[head] + 1
		}
	}
	if last := len(d.order) - tail; tail > 0 {
		for to = d.order[last]; last-1 > head && d.at(last-1).kind == rule; last-- {
			to = d.order[last-1]
		}
	}
	raw := make([]string, 0, to-from)
	for _, l := range d.lines[from:to] {
		raw = append(raw, l.raw)
	}
	return trimBlankEdges(raw)
}

// frontMatter reports whether the rule in line n opens a block of metadata.
func (d *document) frontMatter(n int) bool {
	if n+2 >= len(d.order) || d.order[n+1] != d.order[n]+1 {
		return false
	}
	for m := n + 1; m < len(d.order); m++ {
		if d.at(m).kind == rule {
			return true
		}
	}
	return false
}

func trimBlankEdges(lines []string) string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\r")
}

// quote names lines and quotes their beginning.
func (d *document) quote(from, to int) string {
	first := fmt.Sprintf("line %d (%q)", d.order[from]+1, content.Line(d.at(from).raw, maxQuoted))
	if to-from == 1 {
		return first
	}
	return fmt.Sprintf("lines %d to %d (%q and on)", d.order[from]+1, d.order[to-1]+1, content.Line(d.at(from).raw, maxQuoted))
}

func (d *document) quoteEnds(head, tail int) string {
	switch n := len(d.order); {
	case tail == 0:
		return d.quote(0, head)
	case head == 0:
		return d.quote(n-tail, n)
	default:
		return d.quote(0, head) + " and " + d.quote(n-tail, n)
	}
}
