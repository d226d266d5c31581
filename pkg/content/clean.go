package content

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Controls reports whether a character controls a terminal, C1 controls included, or
// overrides the order in which the text around it reads. Marks of the direction of one
// word do not. White space of ASCII counts.
func Controls(r rune) bool { return unicode.IsControl(r) || reorders(r) }

// reorders reports whether a character overrides the order in which the text around it
// reads, or ends a line without being a line feed.
func reorders(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u2028' || r == '\u2029'
}

// Clean returns text from outside in a form that is safe to put into a prompt: Printable, and
// without characters that a reader does not see, such as those of no width and tags. Joiners,
// variation selectors and marks of direction stay where their script or sign needs them. It reads
// a whole text: what a character needs can be before or after it.
func Clean(text string) string { return withoutInvisible(Printable(text)) }

// Printable returns text from outside, or a piece of one, in a form that is safe to print: line
// feeds and tabs stay, carriage returns are removed, and other Controls and invalid bytes become
// U+FFFD.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return -1
		case Controls(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// EscapeJSON returns valid JSON with the Controls that JSON permits in texts as escapes. It
// has the same values.
func EscapeJSON(data []byte) []byte {
	if bytes.IndexFunc(data, escaped) < 0 {
		return data
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		if escaped(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// escaped reports whether EscapeJSON escapes a character. Those of ASCII are outside of
// texts, where they are white space, or escaped by every encoder.
func escaped(r rune) bool { return r >= 0x7F && Controls(r) }
