package model

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// maxSendableName is the longest name of a function that every service accepts.
const maxSendableName = 64

// SendableName returns a tool's name that a model made up as one that services
// accept in a request: 1 to 64 letters, digits, _ and -.
func SendableName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "_"
	}
	return name[:min(len(name), maxSendableName)]
}

// SendableText returns a text of the same length whose NUL bytes are spaces: some services
// refuse a request with NUL, and some models answer nothing after it (llama.cpp).
func SendableText(text string) string {
	if strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(text, "\x00", " ")
}

// maxSendableDepth is how deep arguments and opaque data may be nested. Rust's decoder refuses
// more than 127 levels, Python's about 1,000, with the at most 6 levels of a request around them and
// those that a proxy adds.
const maxSendableDepth = 100

// SendableArguments returns the arguments that a model wrote as a JSON object: an
// object unchanged, anything else inside of one. Some services demand an object, and servers
// that fill a template with the arguments refuse a conversation in which they do
// not parse. Halves of surrogate pairs and NUL, which services refuse, become U+FFFD. Of members
// of one name the last counts, and a number that no float64 can have becomes a text.
func SendableArguments(arguments string) string {
	arguments = strings.ToValidUTF8(sendableEscapes(arguments), "\uFFFD")
	trimmed := strings.TrimSpace(arguments)
	switch {
	case trimmed == "":
		return "{}"
	case trimmed[0] == '{' && !schema.Deeper(arguments, maxSendableDepth) && json.Valid([]byte(arguments)):
		return sendableValues(arguments)
	}
	wrapped, err := json.Marshal(map[string]string{"not_a_json_object": SendableText(arguments)})
	if err != nil {
		return "{}"
	}
	return string(wrapped)
}

// escapeBytes is the length of an escape such as \ud83d.
const escapeBytes = len(`\ud83d`)

// sendableEscapes returns JSON in which the escapes of NUL and of halves of surrogate pairs are
// those of U+FFFD. The length stays the same.
func sendableEscapes(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	var changed []byte // nil: nothing has changed
	for at := 0; at < len(text); {
		unit, ok := escaped(text[at:])
		switch {
		case !ok && text[at] == '\\':
			at += 2
			continue
		case !ok:
			at++
			continue
		}
		if next, two := escaped(text[min(at+escapeBytes, len(text)):]); two && utf16.DecodeRune(unit, next) != '\uFFFD' {
			at += 2 * escapeBytes
			continue
		}
		if unit == 0 || utf16.IsSurrogate(unit) {
			if changed == nil {
				changed = []byte(text)
			}
			copy(changed[at:], `\ufffd`)
		}
		at += escapeBytes
	}
	if changed == nil {
		return text
	}
	return string(changed)
}

// escaped returns the UTF-16 unit whose escape a text begins with.
func escaped(text string) (unit rune, ok bool) {
	if len(text) < escapeBytes || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:escapeBytes], 16, 16)
	return rune(n), err == nil
}
