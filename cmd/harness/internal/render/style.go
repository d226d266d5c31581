package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Style is the style of lines for people.
type Style struct {
	// Colour allows colours.
	Colour bool
	// UTF8 allows marks beyond ASCII.
	UTF8 bool
	// Width is the maximum width of a line, in runes; 0 means no limit.
	Width int
	// Terminal reports whether people read the lines while they are written: reasoning
	// is shown. Elsewhere a line reports its tokens.
	Terminal bool
	// Guidance shows the guidance that opens every run.
	Guidance bool
	// Once reports whether a note, which a key names, was never shown on this machine, and
	// remembers it; nil: it was not.
	Once func(key string) bool
}

// first reports whether a note about the wire of a model is to be shown. Other notes always are.
func (s Style) first(key string) bool {
	return s.Once == nil || !strings.HasPrefix(key, "wire_") || s.Once(key)
}

func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) bold(text string) string { return s.paint("1", text) }
func (s Style) dim(text string) string  { return s.paint("2", text) }
func (s Style) good(text string) string { return s.paint("32", text) }
func (s Style) warn(text string) string { return s.paint("33", text) }
func (s Style) bad(text string) string  { return s.paint("31", text) }

func (s Style) mark(utf8, ascii string) string {
	if s.UTF8 {
		return utf8
	}
	return ascii
}

func (s Style) tick() string  { return s.mark("✓", "ok") }
func (s Style) cross() string { return s.mark("✗", "x") }
func (s Style) arrow() string { return s.mark("→", ">") }
func (s Style) bar() string   { return s.mark("┊ ", ": ") }
func (s Style) dot() string   { return s.mark(" · ", " - ") }

// sink keeps the first error of a writer and writes nothing after it.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) print(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}

// clean makes text from outside safe to print: it makes control characters visible,
// which could move the cursor or rename the window, and characters that change the order
// in which text reads.
func clean(text string) string { return content.Printable(text) }

// Clean returns text from outside in a form that is safe for a terminal.
func Clean(text string) string { return clean(text) }

// shorten returns text on one line of at most n runes.
func shorten(text string, n int) string {
	text = clean(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-3]) + "..."
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// preview returns the text of a content, or the preview of a blob.
func preview(c *harnessv1.Content) string {
	if blob := c.GetBlob(); blob != nil {
		return blob.GetPreview() + "..."
	}
	return c.GetInline()
}

// call returns a call on one line, with short arguments.
func call(tool string, arguments *harnessv1.Content) string {
	if path := pathOf(tool, arguments); path != "" {
		return strings.TrimSpace(clean(tool) + " " + path + " " + short(without(preview(arguments), "path")))
	}
	return strings.TrimSpace(clean(tool) + " " + short(preview(arguments)))
}

// without returns a JSON object without one of its members.
func without(object, name string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &members) != nil {
		return object
	}
	delete(members, name)
	rest, err := json.Marshal(members) // in the order of their names
	if err != nil || len(members) == 0 {
		return ""
	}
	return string(rest)
}

// short returns the fields of a JSON object as name=value, and other text unchanged.
func short(arguments string) string {
	dec := json.NewDecoder(strings.NewReader(arguments))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return shorten(arguments, 120)
	}
	var parts []string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return shorten(arguments, 120)
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return shorten(arguments, 120)
		}
		parts = append(parts, fmt.Sprint(key)+"="+plain(value))
	}
	return shorten(strings.Join(parts, " "), 160)
}

// plain returns a JSON value, a simple string without quotes.
func plain(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		if s != "" && !strings.ContainsAny(s, " \t\n\"=") {
			return s
		}
		return strconv.Quote(shorten(s, 100))
	}
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return string(value)
	}
	return out.String()
}

// measurable reports whether a duration is worth a word.
func measurable(d time.Duration) bool { return d >= time.Millisecond }

// sentences returns the first sentences of a text on one line, as many as fit into n runes; a
// longer sentence is shortened.
func sentences(text string, n int) string {
	text = clean(strings.Join(strings.Fields(text), " "))
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	for i := n - 1; i > 0; i-- {
		if runes[i] == ' ' && strings.ContainsRune(".!?:;", runes[i-1]) {
			return strings.TrimRight(string(runes[:i]), ":;")
		}
	}
	return shorten(text, n)
}

// span returns a duration with the precision that people need.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// count returns a number with commas.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// number returns an amount without needless digits.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Short returns text from outside on one line of at most n runes.
func Short(text string, n int) string { return shorten(text, n) }

// Call returns a call on one line, with short arguments.
func Call(tool string, arguments *harnessv1.Content) string { return call(tool, arguments) }
