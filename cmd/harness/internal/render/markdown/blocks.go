package markdown

import "strings"

// Split splits a text that is still being written into the top-level blocks that are
// whole, whatever follows them, and the open rest. The rest can be split again with
// the text that follows: the blocks do not depend on how the text arrived.
//
// A block ends where the next one begins, which takes a whole line to know; a
// heading, a rule and a fenced block end with their last line.
func Split(text string) (whole []string, open string) {
	var b block
	start, at := 0, 0
	for {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			return whole, text[start:]
		}
		line := text[at : at+end]
		next := at + end + 1
		if b.kind != none && b.endsBefore(line) {
			whole = append(whole, text[start:at])
			start, b = at, block{}
		}
		if b.kind == none && blank(line) {
			start, at = next, next
			continue
		}
		if b.take(line) {
			whole = append(whole, text[start:next])
			start, b = next, block{}
		}
		at = next
	}
}

// Blocks returns the top-level blocks of a whole text.
func Blocks(text string) []string {
	whole, open := Split(text)
	if open == "" {
		return whole
	}
	if !strings.HasSuffix(open, "\n") {
		open += "\n"
	}
	more, rest := Split(open)
	whole = append(whole, more...)
	if !blank(rest) {
		whole = append(whole, rest)
	}
	return whole
}

type kind int

const (
	none kind = iota
	paragraph
	indented
	list
	fenced
)

// block is the open block.
type block struct {
	kind kind
	// fence is the opening fence of a fenced block, or of one in a list; else empty.
	fence string
	// gap reports whether the line before was blank.
	gap bool
}

// endsBefore reports whether a line begins another block.
func (b *block) endsBefore(line string) bool {
	if blank(line) || b.fence != "" {
		return false
	}
	begins := heading(line) || fence(line) != "" && indent(line) < 2
	switch b.kind {
	case list:
		if indent(line) >= 2 {
			return false
		}
		return begins || rule(line) || b.gap && !item(line)
	case indented:
		return indent(line) < 4
	case paragraph:
		return b.gap || begins || rule(line) && !underline(line) || item(line) && !numbered(line)
	default:
		return false
	}
}

// take adds a line to the block and reports whether the block ends with it.
func (b *block) take(line string) (ended bool) {
	b.gap = blank(line)
	if b.fence != "" {
		if closes(b.fence, line) {
			b.fence = ""
			return b.kind == fenced
		}
		return false
	}
	switch {
	case b.kind == list:
		b.fence = fence(content(line))
	case b.kind != none:
	case heading(line), rule(line):
		return true
	case fence(line) != "" && indent(line) < 4:
		b.kind, b.fence = fenced, fence(line)
	case item(line):
		b.kind, b.fence = list, fence(content(line))
	case indent(line) >= 4:
		b.kind = indented
	default:
		b.kind = paragraph
	}
	return false
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// indent returns the number of columns before the text of a line.
func indent(line string) (n int) {
	for _, r := range line {
		switch r {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}

func heading(line string) bool {
	text := strings.TrimLeft(line, " ")
	marks := len(text) - len(strings.TrimLeft(text, "#"))
	return indent(line) < 4 && marks >= 1 && marks <= 6 && (len(text) == marks || text[marks] == ' ' || text[marks] == '\t')
}

// rule reports whether a line is a thematic break, unless it underlines a heading.
func rule(line string) bool {
	text := strings.NewReplacer(" ", "", "\t", "").Replace(line)
	if indent(line) >= 4 || len(text) < 3 {
		return false
	}
	return strings.Trim(text, "-") == "" || strings.Trim(text, "*") == "" || strings.Trim(text, "_") == ""
}

// underline reports whether a line makes the paragraph above it a heading.
func underline(line string) bool { return strings.Trim(strings.TrimSpace(line), "-") == "" }

// fence returns the fence that opens a block of code, empty for other lines.
func fence(line string) string {
	text := strings.TrimLeft(line, " \t")
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, mark)
		if n := len(text) - len(rest); n >= 3 && (mark == "~" || !strings.Contains(rest, "`")) {
			return text[:n]
		}
	}
	return ""
}

// closes reports whether a line closes the block that fence opened.
func closes(fence, line string) bool {
	text := strings.TrimSpace(line)
	return len(text) >= len(fence) && strings.Trim(text, fence[:1]) == ""
}

// item reports whether a line begins an item of a list.
func item(line string) bool { return content(line) != line && indent(line) < 4 && !rule(line) }

// numbered reports whether an item has a number that cannot interrupt a paragraph.
func numbered(line string) bool {
	text := strings.TrimLeft(line, " ")
	return text[0] >= '0' && text[0] <= '9' && !strings.HasPrefix(text, "1.") && !strings.HasPrefix(text, "1)")
}

// content returns the text after the marker of an item; a line without a marker is
// returned unchanged.
func content(line string) string {
	text := strings.TrimLeft(line, " ")
	if text == "" {
		return line
	}
	n := 0
	for n < len(text) && n < 9 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	switch {
	case n == 0 && strings.ContainsRune("-+*", rune(text[0])):
		n = 1
	case n > 0 && n < len(text) && (text[n] == '.' || text[n] == ')'):
		n++
	default:
		return line
	}
	if n < len(text) && text[n] != ' ' && text[n] != '\t' {
		return line
	}
	return text[n:]
}
