package quality

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

const (
	maxAnswer = 64 << 10 // bytes of a model's answer that are read
	maxStarts = 64       // places of an answer where a JSON value is tried
)

// fields is a JSON object.
type fields map[string]json.RawMessage

// values returns the JSON objects and arrays of text, in order. Text around them, such as
// the fences of a code block, is skipped.
func values(text string) []json.RawMessage {
	text = content.Cut(text, maxAnswer)
	var found []json.RawMessage
	for range maxStarts {
		start := strings.IndexAny(text, "{[")
		if start < 0 {
			break
		}
		text = text[start:]
		decoder := json.NewDecoder(strings.NewReader(text))
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			text = text[1:]
			continue
		}
		found = append(found, value)
		text = text[decoder.InputOffset():]
	}
	return found
}

// objects returns the JSON objects of text that have a field, in order.
func objects(text, field string) []fields {
	var found []fields
	for _, value := range values(text) {
		if o := object(value); o != nil && o[field] != nil {
			found = append(found, o)
		}
	}
	return found
}

// object returns a JSON object, or nil if value is something else.
func object(value json.RawMessage) fields {
	var o fields
	if json.Unmarshal(value, &o) != nil {
		return nil
	}
	return o
}

// list returns the elements of a JSON array, or nil if value is something else.
func list(value json.RawMessage) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(value, &l) != nil {
		return nil
	}
	return l
}

// text returns a field that is a string, without white space around it; else "".
func (f fields) text(name string) string { return stringOf(f[name]) }

func stringOf(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

// strings returns the strings of a field that is an array, each on one line and of at most
// limit bytes, at most count of them.
func (f fields) strings(name string, count, limit int) []string {
	var texts []string
	for _, element := range list(f[name]) {
		if s := content.Line(stringOf(element), limit); s != "" && len(texts) < count {
			texts = append(texts, s)
		}
	}
	return texts
}

// flag returns a field that is a boolean, and whether it is one.
func (f fields) flag(name string) (value, ok bool) {
	var b *bool
	if json.Unmarshal(f[name], &b) != nil || b == nil {
		return false, false
	}
	return *b, true
}

// number returns a field that is a number, and whether it is one. A number that is too
// large for a double is infinite.
func (f fields) number(name string) (float64, bool) {
	raw := string(f[name])
	if raw == "" || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseFloat(raw, 64)
	if err != nil && !math.IsInf(n, 0) {
		return 0, false
	}
	return n, true
}

// figure returns a field that is a number as a whole number from low to high, or nil if it
// is no number.
func (f fields) figure(name string, low, high uint32) *uint32 {
	n, ok := f.number(name)
	if !ok {
		return nil
	}
	figure := uint32(min(max(math.Floor(n), float64(low)), float64(high)))
	return &figure
}

// first returns the first limit code points of text.
func first(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	n := 0
	for at := range text {
		if n == limit {
			return text[:at]
		}
		n++
	}
	return text
}

// genuine returns a model's text without what marks a fallback, so that a model cannot
// claim that none answered.
func genuine(text string) string {
	mark := strings.TrimSpace(Fallback)
	for strings.HasPrefix(text, mark) {
		text = strings.TrimSpace(strings.TrimPrefix(text, mark))
	}
	return text
}

// count returns a length as an unsigned number.
func count(n int) uint32 {
	return uint32(min(uint64(max(n, 0)), math.MaxUint32))
}

// chars returns the code points of text.
func chars(text string) uint64 { return uint64(count(utf8.RuneCountInString(text))) }
