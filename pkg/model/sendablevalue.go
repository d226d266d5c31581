package model

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// SendableOpaque reports whether JSON that goes back to a provider unchanged can be in a request.
// Services refuse invalid UTF-8, NUL, halves of surrogate pairs, deep values, members of one name and
// infinite numbers, also where they have sent them.
func SendableOpaque(data []byte) bool {
	text := string(data)
	return utf8.ValidString(text) && sendableEscapes(text) == text &&
		!schema.Deeper(text, maxSendableDepth) && !ambiguous(text)
}

// sendableValues returns a JSON object in which no object has two members of one name, and each
// number is finite. It is unchanged if that is so already.
func sendableValues(object string) string {
	if !ambiguous(object) {
		return object
	}
	d := json.NewDecoder(strings.NewReader(object))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return object
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(finite(value)) != nil {
		return object
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// finite returns a value whose infinite numbers are texts.
func finite(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = finite(member)
		}
	case []any:
		for i, element := range v {
			v[i] = finite(element)
		}
	case json.Number:
		if infinite(v.String()) {
			return v.String()
		}
	}
	return value
}

// infinite reports whether a number is infinite as a float64. Strict decoders refuse such a number.
func infinite(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	return err != nil
}

// ambiguous reports whether JSON has an object with two members of one name, or an infinite
// number. It reads the text once. Of text that is no JSON it reports anything.
func ambiguous(text string) bool {
	var few [8]members // so that ordinary texts allocate nothing
	open := few[:0]
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '{' || c == '[':
			open = append(open, members{})
		case c == '}' || c == ']':
			open = open[:max(len(open)-1, 0)]
		case c == '"':
			end := at + quotedLen(text[at:])
			if len(open) > 0 && strings.HasPrefix(strings.TrimLeft(text[end:], " \t\r\n"), ":") && open[len(open)-1].repeats(text[at:end]) {
				return true
			}
			at = end - 1
		case c == '-' || c >= '0' && c <= '9':
			number := text[at : at+numberLen(text[at:])]
			if (len(number) > maxFinite || strings.ContainsAny(number, "eE")) && infinite(number) {
				return true
			}
			at += len(number) - 1
		}
	}
	return false
}

// maxFinite is the most digits of a number that is always finite.
const maxFinite = 308

// members are the names of an object that have been read.
type members struct {
	few   [4]string
	count int
	more  map[string]bool // the names beyond few
}

// repeats adds a name, a JSON string, and reports whether the object has it already.
func (m *members) repeats(name string) bool {
	if strings.Contains(name, `\`) {
		var unquoted string
		if json.Unmarshal([]byte(name), &unquoted) == nil {
			name = `"` + unquoted + `"`
		}
	}
	for _, n := range m.few[:m.count] {
		if n == name {
			return true
		}
	}
	switch {
	case m.count < len(m.few):
		m.few[m.count] = name
		m.count++
		return false
	case m.more[name]:
		return true
	case m.more == nil:
		m.more = map[string]bool{}
	}
	m.more[name] = true
	return false
}

// quotedLen returns the length of the JSON string that a text begins with.
func quotedLen(text string) int {
	for at := 1; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(text)
}

// numberLen returns the length of the number that a text begins with.
func numberLen(text string) int {
	n := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("+-.eE0123456789", r) })
	if n < 0 {
		return len(text)
	}
	return n
}
