package shown

import (
	"bytes"
	"encoding/json"
	"strings"
)

// arguments returns the arguments of a call with long strings shortened. Members, their
// order and all other values remain.
//
// Arguments that are not valid JSON are shortened as a text. The line within it is no JSON,
// and its line breaks cannot be part of a JSON string, so the result is not valid either:
// it is sent as before, as a string.
func (c cutter) arguments(text string) string {
	if len(text) <= c.limit || strings.TrimSpace(text) == "" {
		return text
	}
	count := c.count
	c.count = func(text string) int { return count(quote(text)) }
	if !json.Valid([]byte(text)) {
		return c.shorten(text, c.readArguments)
	}
	var out strings.Builder
	copied := 0
	for at := strings.IndexByte(text, '"'); at >= 0; {
		end := endOfString(text, at)
		if end-at > c.limit && !isName(text[end:]) {
			if short, ok := c.value(text[at:end]); ok {
				out.WriteString(text[copied:at])
				out.WriteString(short)
				copied = end
			}
		}
		if at = strings.IndexByte(text[end:], '"'); at >= 0 {
			at += end
		}
	}
	out.WriteString(text[copied:])
	return out.String()
}

// value returns a JSON string shortened; ok is false if it has at most limit tokens.
func (c cutter) value(literal string) (short string, ok bool) {
	var text string
	if json.Unmarshal([]byte(literal), &text) != nil {
		return "", false
	}
	if short = c.shorten(text, c.readArguments); short == text {
		return "", false
	}
	return quote(short), true
}

// endOfString returns the index after the string of valid JSON that begins at an index.
func endOfString(text string, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(text)
}

// isName reports whether a string that is followed by rest is the name of a member.
func isName(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest != "" && rest[0] == ':'
}

// quote returns a text as a JSON string.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""` // strings can be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}
