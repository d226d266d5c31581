package toolhost

import (
	"sort"
	"strings"
)

// Line ends of files. A model that edits a file writes "\n", whatever the file has.
const (
	unixEnd = "\n"
	dosEnd  = "\r\n"
	macEnd  = "\r"
	bom     = "\ufeff"
)

// maxMixed is the size up to which a file that is written as a whole keeps different line ends. All lines of a larger one get
// that of most.
const maxMixed = 1 << 20

// Rewrite returns content as a file stores it that has before and gets a whole new content, and the name of
// the line ends that it kept, which content does not have; empty for none. Lines that stay keep their line end,
// new ones get that of the place, and a byte order mark stays. A content with a line end "\r\n" is stored
// unchanged. To rewrite the result with the same content changes nothing.
func Rewrite(before, content string) (after, kept string) {
	if strings.HasPrefix(before, bom) && content != "" && !strings.HasPrefix(content, bom) {
		content = bom + content
	}
	if strings.Contains(content, macEnd) || !strings.Contains(before, macEnd) || strings.ContainsRune(before+content, 0) {
		return content, ""
	}
	var lines []line
	if len(before) <= maxMixed && 2*len(content) <= maxMixed {
		lines = splitLines(before, endsOf(before))
	}
	after = withEnds(content, lines, mainEnd(before))
	switch {
	case strings.Contains(after, dosEnd):
		kept = "CRLF"
	case after != content:
		kept = "CR"
	}
	return after, kept
}

// place is a part of a content that is to be replaced.
type place struct{ from, to int }

// findText returns the places of old in content, at most maxOccurrences: those of the exact text, and if there is none,
// those that differ in line ends alone. A place does not begin within a line end.
func findText(content, old string) []place {
	var found []place
	for _, at := range occurrences(content, old) {
		from := at
		if old[0] == '\n' && at > 0 && content[at-1] == '\r' {
			from--
		}
		found = append(found, place{from, at + len(old)})
	}
	if found != nil || !strings.Contains(content, macEnd) && !strings.Contains(old, macEnd) {
		return found
	}
	ends := endsOf(content)
	text, offsets := withoutReturns(content, ends)
	wanted := plain(plain(old, dosEnd), ends)
	if wanted == "" {
		return nil
	}
	for _, at := range occurrences(text, wanted) {
		found = append(found, place{offsets.of(at), offsets.of(at + len(wanted))})
	}
	return found
}

// replacementAt returns the text to put in a place of content: replacement with the line ends of the place, unless
// the place is old with its line ends and replacement has other line ends alone, the purpose of the call.
func replacementAt(content string, at place, old, replacement string) string {
	taken := content[at.from:at.to]
	ends := endsOf(content)
	if plain(old, ends) == plain(replacement, ends) {
		return replacement
	}
	end := endAfter(content, at)
	if end == "" || !strings.ContainsAny(replacement, "\r\n") {
		return replacement
	}
	return withEnds(plain(replacement, dosEnd), splitLines(taken, ends), end)
}

// plain returns a text whose line ends are "\n".
func plain(text, ends string) string {
	text, _ = withoutReturns(text, ends)
	return text
}

// endsOf returns "\r" for a content whose only line ends are that, and "\r\n" for every other one, which can have both
// of the others.
func endsOf(content string) string {
	if !strings.Contains(content, unixEnd) && strings.Contains(content, macEnd) {
		return macEnd
	}
	return dosEnd
}

// offsets are the positions in a text without returns after which a byte of the original is left out.
type offsets []int

// of returns the position in the original.
func (o offsets) of(at int) int { return at + sort.SearchInts(o, at) }

// withoutReturns returns a text with "\n" for each line end of a kind, and what it left out.
func withoutReturns(text, ends string) (string, offsets) {
	if ends == macEnd {
		return strings.ReplaceAll(text, macEnd, unixEnd), nil
	}
	if !strings.Contains(text, dosEnd) {
		return text, nil
	}
	var b strings.Builder
	b.Grow(len(text))
	var left offsets
	for {
		before, after, found := strings.Cut(text, dosEnd)
		b.WriteString(before)
		if !found {
			return b.String(), left
		}
		left = append(left, b.Len())
		b.WriteByte('\n')
		text = after
	}
}

// line is a line of a text and its line end, empty for a last one without.
type line struct{ text, end string }

func splitLines(text, ends string) []line {
	var lines []line
	last := unixEnd
	if ends == macEnd {
		last = macEnd
	}
	for text != "" {
		before, after, found := strings.Cut(text, last)
		l := line{before, ""}
		if found {
			l.end = last
			if cut, ok := strings.CutSuffix(before, macEnd); ok && last == unixEnd {
				l = line{cut, dosEnd}
			}
		}
		lines, text = append(lines, l), after
	}
	return lines
}

// mainEnd returns the line end that most lines of a content have.
func mainEnd(content string) string {
	if endsOf(content) == macEnd {
		return macEnd
	}
	if dos := strings.Count(content, dosEnd); dos > 0 && 2*dos >= strings.Count(content, unixEnd) {
		return dosEnd
	}
	return unixEnd
}

// endAfter returns the line end of the place: that within it, else the next one, else the last one before it; empty for a
// content of one line.
func endAfter(content string, at place) string {
	ends := endsOf(content)
	for _, part := range []string{content[at.from:at.to], content[at.to:]} {
		if i := strings.IndexAny(part, lastByte(ends)); i >= 0 {
			return endAt(part, i)
		}
	}
	before := content[:at.from]
	if i := strings.LastIndexAny(before, lastByte(ends)); i >= 0 {
		return endAt(before, i)
	}
	return ""
}

func lastByte(ends string) string {
	if ends == macEnd {
		return macEnd
	}
	return unixEnd
}

// endAt returns the line end whose last byte is at i.
func endAt(text string, i int) string {
	switch {
	case text[i] == '\r':
		return macEnd
	case i > 0 && text[i-1] == '\r':
		return dosEnd
	}
	return unixEnd
}

// withEnds returns a text, whose line ends are "\n", with those of before for the lines at its beginning and end that
// both have, and with end for the others.
func withEnds(text string, before []line, end string) string {
	if len(before) == 0 {
		return strings.ReplaceAll(text, unixEnd, end)
	}
	lines := splitLines(text, dosEnd)
	same := 0
	for same < min(len(lines), len(before)) && lines[same].text == before[same].text {
		same++
	}
	tail := 0
	for tail < min(len(lines), len(before))-same && lines[len(lines)-1-tail].text == before[len(before)-1-tail].text {
		tail++
	}
	var b strings.Builder
	b.Grow(len(text) + len(lines))
	for i, l := range lines {
		b.WriteString(l.text)
		if l.end == "" {
			continue
		}
		kept := ""
		if i < same {
			kept = before[i].end
		} else if j := i - len(lines) + len(before); j >= len(before)-tail {
			kept = before[j].end
		} else if len(lines) == len(before) {
			kept = before[i].end
		}
		if kept == "" {
			kept = end
		}
		b.WriteString(kept)
	}
	return b.String()
}
