// Package narration recognises narration in artifacts: words that announce, introduce
// or report on the product and are no part of it, and placeholders. Check is pure. It never
// fails: a text in a language that it does not know is clean.
//
// What narration is, is data: tables/ has one table a language, which gives the signs of
// narration in a sentence, and rules.tsv, which gives each combination of signs and
// circumstances a weight. One function adds the weights that hold for a line.
package narration

import (
	"encoding/json"
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
	// window is the number of lines at each end that may be stripped; blank ones do not count.
	window = 5
	// maxStripped is the number of lines that may be stripped.
	maxStripped = 3
	// maxAlone is the number of lines that a text without content may have.
	maxAlone = 12
	// maxQuoted bounds a line that a reason quotes, in bytes.
	maxQuoted = 80
)

// Check finds narration in the first and last lines of an artifact, and lines within its
// content that report on the work, in English, German, French, Spanish, Italian and
// Portuguese. stripped is the text to store: content itself if it is CLEAN, content without its
// narration and blank edges if it is LIGHT, and empty if it is HEAVY. why names the lines; it is
// empty if the content is CLEAN.
//
// Words alone do not decide: "Let me know if Tuesday suits you" belongs at the end of a
// letter, but not of a report. A line counts by what it says about the artifact, by its
// position, and by the rest of the text.
func Check(content string) (level Level, stripped, why string) {
	d := readDocument(content)
	if len(d.order) == 0 {
		return Clean, content, ""
	}
	if d.empty() {
		return Heavy, "", "it is nothing but " + d.quote(0, len(d.order)) + ", which speaks of a product and is none"
	}
	head := d.leading()
	tail := d.trailing(head)
	if head+tail >= len(d.order) {
		return Clean, content, "" // each line may be content, and there is no other
	}
	if at := d.amid(head, len(d.order)-tail); at >= 0 {
		return Heavy, "", d.quote(at, at+1) + " speaks of the work between the content"
	}
	switch lines := head + tail; {
	case lines == 0, d.onlyTitles(head, len(d.order)-tail):
		return Clean, content, ""
	case lines > maxStripped:
		return Heavy, "", d.quoteEnds(head, tail) + " speak of the artifact instead of being part of it"
	}
	return Light, d.without(head, tail), d.quoteEnds(head, tail)
}

// empty reports whether all of the text is narration or a placeholder, but for its titles and
// one sentence that may be either.
func (d *document) empty() bool {
	narrated, other := 0, 0
	for n := range d.order {
		l := d.at(n)
		switch {
		case n > maxAlone, l.kind == quoted, l.kind == code, l.kind == unread, d.facts&(isProgram|isTabular) != 0:
			return false
		case l.kind == rulerLine, l.kind == heading && len(d.order) > 1:
		case (l.signs&^(neutral|signText|signPart|signForm|signWhole) != 0 || placeholder(strings.TrimSpace(l.raw))) && d.score(n, alone) > 0 && !d.answers(l):
			narrated += len(l.raw)
		case n > 0 && narrated > 0 && d.attached(n) && l.signs.has(working|signDone|signProposal|signPolite):
		case strings.IndexFunc(l.raw, wordRune) < 0:
		case n > 0 && strings.HasSuffix(d.at(n-1).bare, ":"):
			return false // the line before introduces it
		default:
			other += len(l.raw)
		}
	}
	return narrated > 0 && other*2 < narrated || narrated+other == 0 && d.blankForm()
}

// answers reports whether a line under a title only declares something complete, which is an answer
// there: "# Status", "The migration is complete."
func (d *document) answers(l *line) bool {
	return d.facts&isHeaded != 0 && l.signs&^(neutral|signText|signPart|signForm|signWhole|signSize) == signDone
}

// blankForm reports whether a text of titles alone, or of one line without a word, is a
// placeholder: "…", "---".
func (d *document) blankForm() bool {
	titles := 0
	for n := range d.order {
		if l := d.at(n); l.kind == heading && strings.HasPrefix(l.raw, "#") && !d.sameParagraph(n) {
			titles++
		}
	}
	return titles > 2 && titles == len(d.order) || len(d.order) == 1 && strings.Trim(d.at(0).raw, ".…-–—_*?xX \t\r") == ""
}

// onlyTitles reports whether the lines from line from to line to are titles: what surrounds them is
// their content then.
func (d *document) onlyTitles(from, to int) bool {
	for n := from; n < to; n++ {
		if k := d.at(n).kind; k != heading && k != rulerLine {
			return false
		}
	}
	return true
}

// leading is the number of lines at the head that are narration, blank ones not counted.
func (d *document) leading() int {
	if n := d.structured(true); n > 0 {
		return n
	}
	n := 0
	for n < min(len(d.order), window) && (d.narrates(n, atHead) || n > 0 && d.attached(n) || n > 0 && d.bridges(n)) {
		n++
	}
	return n
}

// bridges reports whether line n, between narration at the head, says nothing else.
func (d *document) bridges(n int) bool {
	l := d.at(n)
	return l.kind == prose && !l.framed && len(l.bare) <= maxRead && n+1 < min(len(d.order), window) && d.sameParagraph(n) && d.sameParagraph(n+1) && d.narrates(n+1, atHead)
}

// trailing is the number of lines at the tail that are narration, if the first head lines are.
func (d *document) trailing(head int) int {
	if n := d.structured(false); n > 0 && n < len(d.order)-head {
		return n
	}
	for n := max(head, len(d.order)-window); n < len(d.order); n++ {
		if d.narrates(n, atTail) && d.narratesOn(n) {
			return len(d.order) - n
		}
	}
	return 0
}

// narrates reports whether line n is narration at an edge.
func (d *document) narrates(n int, where facts) bool {
	l := d.at(n)
	return l.kind == prose && !d.isCode(l) && d.score(n, where) > 0 && d.inline(n) == 0 && (where != atTail || !l.startsWithContent())
}

// isCode reports whether a line is one of a program.
func (d *document) isCode(l *line) bool { return d.facts&isProgram != 0 && coded(l.raw) }

// startsWithContent reports whether a sentence that may be content precedes another one.
func (l *line) startsWithContent() bool {
	if len(l.sentences) < 2 {
		return false
	}
	first := l.sentences[0]
	return first&^(neutral|signText|signPart|signForm|signYou|signPublic|signWhole) == 0 && (!first.has(signBrief) || first.has(signNumbers|signNames|signStrange))
}

// narratesOn reports whether from the narration in line n on all is narration, but for one line
// of prose in its paragraph or between two that are.
func (d *document) narratesOn(n int) bool {
	list := strings.HasSuffix(d.at(n).bare, ":")
	unknowns := 0
	for n++; n < len(d.order); n++ {
		l := d.at(n)
		switch {
		case l.kind == rulerLine, d.narrates(n, atTail), list && l.kind == item, d.attached(n):
		case l.kind == prose && !l.framed && isSentence(l.bare) && unknowns == 0 && (d.sameParagraph(n) && len(l.bare) <= maxRead || n+1 < len(d.order) && d.narrates(n+1, atTail)):
			unknowns++
		default:
			return false
		}
	}
	return true
}

// attached reports whether line n belongs to the sentence or the paragraph of the line before it,
// which is narration.
func (d *document) attached(n int) bool {
	before, l := d.at(n-1), d.at(n)
	if !d.sameParagraph(n) || l.framed || l.kind != prose && l.kind != item {
		return false
	}
	if l.kind == item {
		return strings.HasSuffix(before.bare, ":") || before.kind == item
	}
	return !isSentence(before.bare) || !strings.HasSuffix(before.bare, ":") && l.signs.has(signBack|signMe|signProposal|signPolite)
}

// amid returns the first line of narration within the content from line from to line
// to; -1 if there is none.
func (d *document) amid(from, to int) int {
	for n := from; n < to; n++ {
		l := d.at(n)
		if d.isCode(l) {
			continue
		}
		if (l.kind == prose && n > from && n < to-1 || l.signs.has(signTool) && l.kind != heading) && d.score(n, amid) > 0 {
			return n
		}
		if n == from && d.inline(n) > 0 || n == to-1 && n == len(d.order)-1 && d.mixed(n) {
			return n
		}
	}
	return -1
}

// inline returns where content follows in line n, which hands it over in its first words; 0 if
// it does not.
func (d *document) inline(n int) int {
	l := d.at(n)
	at := strings.Index(l.bare, ": ")
	if at < 0 || l.kind != prose || l.framed || len(strings.Fields(l.bare[at:min(len(l.bare), at+maxRead)])) < 4 {
		return 0
	}
	said := line{raw: l.raw, bare: l.bare[:at+1], kind: prose}
	said.read()
	titled := !said.signs.has(signHail | signFinite | signMe | signYou | signRequest) // "An outline: …" names a text and hands nothing over
	if said.signs.has(signHand|signHail) && said.signs.has(signText|signRequest) && said.signs.has(signBegins) && !said.signs.has(signVoice) && !titled {
		return at + 2
	}
	return 0
}

// mixed reports whether line n ends with a sentence of narration after content.
func (d *document) mixed(n int) bool {
	l := d.at(n)
	if l.kind != prose || l.framed || len(l.sentences) < 2 || d.facts&isCommit != 0 {
		return false
	}
	whole := *l
	defer func() { *d.at(n) = whole }()
	l.sentences = l.sentences[len(l.sentences)-1:]
	l.signs = l.sentences[0]
	return d.score(n, atTail) > mixedScore
}

// mixedScore is the score above which the last sentence of a paragraph of content is narration.
const mixedScore = 30

// structured is the number of lines that precede (or follow) a JSON document: they are no
// part of it, whatever they say. 0 if the artifact is something else.
func (d *document) structured(head bool) int {
	from, to := -1, -1
	for n := range d.order {
		trimmed := strings.TrimSpace(d.at(n).raw)
		if from < 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
			from = n
		}
		if last := trimmed[len(trimmed)-1]; last == '}' || last == ']' {
			to = n
		}
	}
	if from < 0 || to < from || from == 0 && to == len(d.order)-1 || (to-from+1)*2 < len(d.order) || from > window || len(d.order)-1-to > window {
		return 0
	}
	raw := make([]string, 0, to-from+1)
	for n := from; n <= to; n++ {
		raw = append(raw, d.at(n).raw)
	}
	text := strings.Join(raw, "\n")
	if len(text) < 16 || !json.Valid([]byte(text)) {
		return 0
	}
	for n := range d.order {
		if (n < from || n > to) && d.at(n).kind != prose && d.at(n).kind != item {
			return 0
		}
	}
	if head {
		return from
	}
	return len(d.order) - 1 - to
}

// without returns the content without head and tail lines, blank edges, and the rulers
// that separate them.
func (d *document) without(head, tail int) string {
	from, to := 0, len(d.lines)
	if head > 0 {
		for from = d.order[head-1] + 1; head < len(d.order)-1 && d.at(head).kind == rulerLine && !d.frontMatter(head); head++ {
			from = d.order[head] + 1
		}
	}
	if last := len(d.order) - tail; tail > 0 {
		for to = d.order[last]; last-1 > head && d.at(last-1).kind == rulerLine; last-- {
			to = d.order[last-1]
		}
	}
	raw := make([]string, 0, to-from)
	for _, l := range d.lines[from:to] {
		raw = append(raw, l.raw)
	}
	return trimBlankEdges(raw)
}

// frontMatter reports whether the ruler in line n opens a block of metadata.
func (d *document) frontMatter(n int) bool {
	if n+2 >= len(d.order) || d.order[n+1] != d.order[n]+1 {
		return false
	}
	for m := n + 1; m < len(d.order); m++ {
		if d.at(m).kind == rulerLine {
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
