package readback

import (
	"context"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sort"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// Bounds of a search. The time that a search needs grows with the product of the bytes that
// it reads and the instructions of the pattern.
const (
	maxMatches      = 100
	maxInstructions = 2_000
	maxBytes        = 16 << 20
	maxSteps        = 1 << 27 // about a second
)

// Sizes of the shown part of a line, in bytes.
const (
	shownLine   = 300
	shownBefore = 100 // before a match in a longer line
)

// match is a line that matches, or a part of a long one.
type match struct {
	message  int
	line     int // from 1
	at       int // offset of text in the text of the message
	position int // in the text of the span
	text     string
}

// compile returns a pattern and the number of bytes that it may search. An error is a text
// for the model.
func compile(pattern string) (*regexp.Regexp, int, error) {
	quote := content.Clip(pattern, quoted)
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("pattern %q: %w; expected RE2 syntax, such as (?i)error|warning", quote, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, fmt.Errorf("pattern %q: %w", quote, err)
	}
	if n := len(program.Inst); n > maxInstructions {
		return nil, 0, fmt.Errorf("pattern %q: too complex; use a shorter one with smaller repetitions", quote)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, 0, fmt.Errorf("pattern %q: %w", quote, err)
	}
	return re, min(maxBytes, maxSteps/len(program.Inst)), nil
}

// search returns the lines of a span that match a pattern, from an offset on: as many as
// fit.
func (r *Reader) search(ctx context.Context, s *span, pattern string, offset, limit int) (Result, error) {
	re, budget, err := compile(pattern)
	if err != nil {
		return failed("%v.", err), nil
	}
	f := &search{re: re, limit: limit, budget: budget}
	start := 0
	for id := s.first; id <= s.last && f.next == 0; id++ {
		m := s.messages[id-1]
		size := sizeOf(m)
		if start+size <= offset {
			start += size
			continue
		}
		text, err := r.text(ctx, m)
		if err != nil {
			return Result{}, err
		}
		f.message(ctx, id, start, max(0, offset-start), text)
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		start += size
	}
	if f.next == start && start == s.size() { // the bound was reached at the end
		f.next = 0
	}
	return Result{Text: r.fitMatches(s, f.matches, f.next)}, nil
}

// fitMatches returns matches as a model reads them: all, or as many as fit.
func (r *Reader) fitMatches(s *span, matches []match, next int) string {
	text := s.showMatches(matches, next)
	if _, ok := r.fits(text); ok || len(matches) < 2 {
		return text
	}
	first := func(n int) string { return s.showMatches(matches[:n], matches[n].position) }
	fit := sort.Search(len(matches)-1, func(n int) bool { // the number of those that fit
		_, ok := r.fits(first(n + 1))
		return !ok
	})
	return first(min(max(fit, 1), len(matches)-1))
}

// showMatches returns matches as a model reads them. next is the offset at which to
// continue; 0: nothing is left.
func (s *span) showMatches(matches []match, next int) string {
	var b strings.Builder
	for i, m := range matches {
		if i == 0 || matches[i-1].message != m.message {
			b.WriteString(s.heading(m.message, 0, 0, 0))
		}
		fmt.Fprintf(&b, "line %d, offset %d: %s\n", m.line, m.at, m.text)
	}
	switch {
	case next > 0:
		if len(matches) == 0 {
			fmt.Fprintf(&b, "[No line before offset %d matches.]\n", next)
		}
		fmt.Fprintf(&b, "[More is left. Continue with ref %s, the same pattern, offset %d.]", s.ref, next)
	case len(matches) == 0:
		fmt.Fprintf(&b, "[No line of %s matches.]", s.ref)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// search finds matches in one message after another.
type search struct {
	re      *regexp.Regexp
	limit   int // of the bytes of the matches
	budget  int // bytes that may still be searched
	matches []match
	shown   int // bytes of the matches
	next    int // position at which the search stopped; 0: it read all
}

// message searches the text of a message that begins at position start, from an index on,
// until ctx ends.
func (f *search) message(ctx context.Context, id, start, from int, text string) {
	from = runeStart(text, from)
	line := 1 + strings.Count(text[:min(from, len(text))], "\n")
	for at := from; at < len(text) && f.next == 0 && ctx.Err() == nil; line++ {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if end-at > f.budget {
			end = runeEnd(text, at, at+f.budget)
		}
		f.budget -= end - at
		f.line(match{message: id, line: line, at: at, position: start + at}, strings.TrimRight(text[at:end], "\r\n"))
		if f.budget <= 0 && f.next == 0 {
			f.next = start + end
		}
		at = end
	}
}

// line searches a line that begins at m. Of a long line the surroundings of each match are
// shown.
func (f *search) line(m match, line string) {
	if len(line) <= shownLine {
		if f.re.MatchString(line) {
			m.text = line
			f.take(m)
		}
		return
	}
	covered := 0
	all := f.re.FindAllStringIndex(line, maxMatches+1)
	for _, found := range all {
		if found[0] < covered {
			continue
		}
		from := runeStart(line, max(covered, found[0]-shownBefore))
		to := runeEnd(line, from, min(len(line), from+shownLine))
		f.take(match{message: m.message, line: m.line, at: m.at + from, position: m.position + from, text: line[from:to]})
		covered = to
	}
	if len(all) > maxMatches && f.next == 0 { // there may be more
		f.next = m.position + max(covered, all[maxMatches][0])
	}
}

// take adds a match, unless there are enough.
func (f *search) take(m match) {
	m.text = strings.ToValidUTF8(m.text, "\uFFFD")
	if f.next == 0 && len(f.matches) > 0 && (len(f.matches) == maxMatches || f.shown+len(m.text) > f.limit) {
		f.next = m.position
	}
	if f.next == 0 {
		f.matches = append(f.matches, m)
		f.shown += len(m.text)
	}
}
