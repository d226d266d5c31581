package quality

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Patterns of the monitor. Expressions that can begin anywhere in a text are slow, so these
// begin at a fixed place, and the code that uses them finds the places.
var (
	refusal = regexp.MustCompile(`^(?i)(i can't|i cannot|i am unable to|i'm unable to|i (don't|do not) have (access|the ability)|unfortunately|as an ai( language)? model)\b`)
	filler  = regexp.MustCompile(`^(?i)\s*((sure|of course|certainly|absolutely)[,!.]|(that's a )?great question)`)
)

// refusalIn returns the first words of a refusal in a text, at the start of a word; empty if there
// are none.
func refusalIn(text string) string {
	word := false // the byte before is part of a word
	for n := range len(text) {
		c := text[n]
		if !word {
			switch c {
			case 'i', 'I', 'u', 'U', 'a', 'A':
				if found := refusal.FindString(text[n:]); found != "" {
					return found
				}
			}
		}
		word = isWord(c)
	}
	return ""
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isSpace(text string) bool {
	return text != "" && strings.IndexByte(" \t\n\f\r", text[0]) >= 0
}

// hasForm reports whether a line of a text is a heading or an item of a list, after at most
// three spaces: 1 to 6 number signs, a hyphen, an asterisk, or 1 to 3 digits and a full stop
// or a parenthesis, followed by white space.
func hasForm(text string) bool {
	for {
		if isForm(text) {
			return true
		}
		end := strings.IndexByte(text, '\n')
		if end < 0 {
			return false
		}
		text = text[end+1:]
	}
}

// isForm reports whether the first line of a text is a heading or an item of a list.
func isForm(text string) bool {
	text = text[repeats(text, 3, func(c byte) bool { return c == ' ' }):]
	if text == "" {
		return false
	}
	switch c := text[0]; {
	case c == '#':
		return isSpace(text[repeats(text, 6, func(c byte) bool { return c == '#' }):])
	case c == '-', c == '*':
		return isSpace(text[1:])
	case isDigit(c):
		text = text[repeats(text, 3, isDigit):]
		return text != "" && (text[0] == '.' || text[0] == ')') && isSpace(text[1:])
	}
	return false
}

// repeats returns how many of the first most bytes of a text are of a kind.
func repeats(text string, most int, is func(byte) bool) int {
	n := 0
	for n < min(most, len(text)) && is(text[n]) {
		n++
	}
	return n
}

// minQuote is the least length of a quotation that counts as a citation, in code points.
const minQuote = 15

// HasMarker reports whether a text has the marker of a citation: a number in brackets, the
// address of a page, a quoted line, at least 15 characters in quotation marks, or "according
// to".
func HasMarker(text string) bool {
	// quoted counts the code points after the first mark that opens a quotation in this line;
	// negative if none does.
	quoted, before := -1, '\n'
	for n, c := range text {
		switch c {
		case '"', '”':
			if quoted >= minQuote {
				return true
			}
			if quoted = -1; c == '"' {
				quoted = 0 // it can open another one
			}
		case '\n':
			quoted = -1
		default:
			switch {
			case quoted >= 0:
				quoted++
			case c == '“':
				quoted = 0
			}
			if isMarker(text[n:], c, before) {
				return true
			}
		}
		before = c
	}
	return false
}

// isMarker reports whether a text begins with a marker that is no quotation. Before is the
// character before the text.
func isMarker(text string, c, before rune) bool {
	switch c {
	case 'a', 'A':
		return foldedPrefix(text, "according to")
	case '[':
		digits := repeats(text[1:], 3, isDigit)
		return digits > 0 && strings.HasPrefix(text[1+digits:], "]")
	case 'h', 'H':
		if !foldedPrefix(text, "http") {
			return false
		}
		text = text[len("http"):]
		if s, size := utf8.DecodeRuneInString(text); s == 's' || s == 'S' || s == 'ſ' {
			text = text[size:]
		}
		return strings.HasPrefix(text, "://")
	case '>':
		return before == '\n' && isSpace(text[1:])
	}
	return false
}

// foldedPrefix reports whether a text begins with ASCII letters in any case.
func foldedPrefix(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}
