package agentfile

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is the text of a file, to find places inside its values. Lines and columns
// count from 1, columns in characters.
type source struct {
	name  string
	text  []rune
	lines []int // index in text at which each line begins
}

// breaks normalises the line breaks of YAML.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func newSource(name string, data []byte) *source {
	text := strings.TrimPrefix(string(data), "\ufeff")
	s := &source{name: name, text: []rune(breaks.Replace(text)), lines: []int{0}}
	for i, r := range s.text {
		if r == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// offset returns the index of a place in the text, or the end if the place is past it.
func (s *source) offset(line, column int) int {
	if line < 1 || line > len(s.lines) {
		return len(s.text)
	}
	return min(s.lines[line-1]+max(column, 1)-1, len(s.text))
}

// position returns the line and column of an index.
func (s *source) position(at int) (line, column int) {
	for line = len(s.lines); line > 1 && s.lines[line-1] > at; {
		line--
	}
	return line, at - s.lines[line-1] + 1
}

// firstOf returns the column of the first character of a line that is not blank.
func (s *source) firstOf(line int) int {
	at := s.offset(line, 1)
	for at < len(s.text) && isBlank(s.text[at]) {
		at++
	}
	if at == len(s.text) || s.text[at] == '\n' {
		return 1
	}
	_, column := s.position(at)
	return column
}

// within returns the place in the file of a place in a scalar's value, across quotes,
// escapes and folded lines. Line 0 is the scalar itself.
func (s *source) within(n *yaml.Node, line, column int) (int, int) {
	if line < 1 || n.Kind != yaml.ScalarNode {
		return n.Line, n.Column
	}
	want := runesBefore(n.Value, line, column)
	at := s.content(n)
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		at = s.block(at, n, want)
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && at < len(s.text):
		at = s.flow(at+1, s.text[at], want)
	default:
		at = s.flow(at, 0, want)
	}
	return s.position(min(at, len(s.text)))
}

// runesBefore returns the number of characters of the value before a place in it.
func runesBefore(value string, line, column int) int {
	count := 0
	for ; line > 1; line-- {
		end := strings.IndexByte(value, '\n')
		if end < 0 {
			break
		}
		count += len([]rune(value[:end])) + 1
		value = value[end+1:]
	}
	return count + max(column, 1) - 1
}

// content returns the start of a scalar, after an anchor and a tag.
func (s *source) content(n *yaml.Node) int {
	at := s.offset(n.Line, n.Column)
	for at < len(s.text) && (s.text[at] == '&' || s.text[at] == '!') {
		for at < len(s.text) && !isBlank(s.text[at]) && s.text[at] != '\n' {
			at++
		}
		for at < len(s.text) && (isBlank(s.text[at]) || s.text[at] == '\n') {
			at++
		}
	}
	return at
}

// flow skips want characters of a plain or quoted value.
func (s *source) flow(at int, quote rune, want int) int {
	for done := 0; done < want && at < len(s.text); {
		if end, breaks := s.fold(at); breaks > 0 {
			at = end
			done += max(1, breaks-1)
			continue
		}
		size := 1
		switch r := s.text[at]; {
		case quote == '\'' && r == quote:
			if at+1 == len(s.text) || s.text[at+1] != quote {
				return at // the closing quote
			}
			size = 2
		case quote == '"' && r == quote:
			return at
		case quote == '"' && r == '\\' && at+1 < len(s.text):
			if end, breaks := s.fold(at + 1); breaks > 0 {
				at = end // the line continues without a blank
				continue
			}
			size = 2 + map[rune]int{'x': 2, 'u': 4, 'U': 8}[s.text[at+1]]
		}
		at += size
		done++
	}
	return at
}

// fold returns the end of blanks that contain at least one line break; breaks is 0 if
// there is none.
func (s *source) fold(at int) (end, breaks int) {
	for end = at; end < len(s.text) && (isBlank(s.text[end]) || s.text[end] == '\n'); end++ {
		if s.text[end] == '\n' {
			breaks++
		}
	}
	return end, breaks
}

// block skips want characters of a value below a | or >.
func (s *source) block(at int, n *yaml.Node, want int) int {
	first, _ := s.position(at)
	indent := s.indent(first+1, n.Value)
	at = s.offset(first+1, indent+1)
	for done := 0; done < want && at < len(s.text); {
		if s.text[at] != '\n' {
			at++
			done++
			continue
		}
		line, _ := s.position(at)
		next, count := s.blankLines(line+1, indent)
		said := count // line breaks of the value
		if n.Style&yaml.FoldedStyle != 0 && !s.isIndented(line, indent) && !s.isIndented(next, indent) {
			said = max(1, count-1) // one break is a blank; of several the first says nothing
		}
		if done+said > want { // within the breaks
			next -= done + said - want
		}
		at = s.afterIndent(next, indent)
		done += said
	}
	return at
}

// blankLines returns the first line with content from a line on, and the number of line
// breaks to it from the line before.
func (s *source) blankLines(line, indent int) (next, breaks int) {
	for next, breaks = line, 1; next < len(s.lines); next, breaks = next+1, breaks+1 {
		if at := s.afterIndent(next, indent); at == len(s.text) || s.text[at] != '\n' {
			break
		}
	}
	return next, breaks
}

// isIndented reports whether a line of a block is indented further than the block.
func (s *source) isIndented(line, indent int) bool {
	at := s.afterIndent(line, indent)
	return at < len(s.text) && isBlank(s.text[at])
}

// afterIndent returns the start of the content of a line of a block; a shorter line has
// none.
func (s *source) afterIndent(line, indent int) int {
	at := s.offset(line, 1)
	for i := 0; i < indent && at < len(s.text) && s.text[at] == ' '; i++ {
		at++
	}
	return at
}

// indent returns the indentation of a block: the blanks of its first line that are not
// in the value.
func (s *source) indent(line int, value string) int {
	for line <= len(s.lines) {
		at := s.offset(line, 1)
		blanks := 0
		for at < len(s.text) && s.text[at] == ' ' {
			at++
			blanks++
		}
		if at == len(s.text) {
			return 0
		}
		if s.text[at] != '\n' {
			own := strings.TrimLeft(value, "\n")
			return max(0, blanks-(len(own)-len(strings.TrimLeft(own, " "))))
		}
		line++
	}
	return 0
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }
