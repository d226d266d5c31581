package calls

import (
	"encoding/json"
	"strings"
)

// blanks is the white space of JSON.
const blanks = " \t\r\n"

// scanner reads the JSON of arguments as far as it has arrived. It finds where values end,
// and does not check them.
type scanner struct {
	begun   bool // something but white space has come
	ended   bool // all values so far are whole
	other   bool // the value is neither an object, an array nor a string: its end cannot be seen
	text    bool // within a string
	escaped bool
	depth   int
	members bool // some value is no empty object
}

// read takes the next part of the text.
func (s *scanner) read(part string) {
	for i := 0; i < len(part) && !s.other; i++ {
		s.byte(part[i])
	}
}

func (s *scanner) byte(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
		return
	case s.text:
		s.text, s.escaped = b != '"', b == '\\'
		s.ended = !s.text && s.depth == 0
		return
	case strings.IndexByte(blanks, b) >= 0:
		return
	}
	s.begun, s.ended = true, false
	switch b {
	case '"':
		s.text, s.members = true, true
	case '{', '[':
		s.members = s.members || s.depth > 0
		s.depth++
	case '}', ']':
		s.depth = max(s.depth-1, 0)
		s.ended = s.depth == 0
	default:
		s.members, s.other = true, s.depth == 0
	}
}

// complete reports whether something has come, and is whole.
func (s *scanner) complete() bool { return s.ended }

// open reports whether a value has begun and is not whole.
func (s *scanner) open() bool { return s.begun && !s.ended }

// emptyObject reports whether all values so far are whole and empty objects.
func (s *scanner) emptyObject() bool { return s.ended && !s.members }

// Arguments returns the arguments in the whole text of a call, and whether they are one
// JSON value or empty. Of several objects in a row the empty ones do not count, and one that
// is repeated counts once. Any other text is returned unchanged.
func Arguments(text string) (said string, complete bool) {
	if json.Valid([]byte(text)) || strings.TrimSpace(text) == "" {
		return text, true
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	last := ""
	for strings.Trim(text[decoder.InputOffset():], blanks) != "" {
		var value json.RawMessage
		if decoder.Decode(&value) != nil || !isObject(string(value)) {
			return text, false
		}
		switch v := string(value); {
		case Empty(last), v == last:
			last = v
		case !Empty(v):
			return text, false // two different objects
		}
	}
	return last, true
}

// Empty reports whether arguments are an object without members, or there are none.
func Empty(arguments string) bool {
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.Trim(arguments, blanks), "{"), "}")
	return strings.Trim(inner, blanks) == ""
}
