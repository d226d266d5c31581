package content_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// hostile holds everything that a terminal obeys or that changes the order of a text.
const hostile = "a\x1b]0;t\x07\x00\u0080\u009b2J\u009f\x7f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\u0085\x9b\rb"

// plain reports whether a text is safe for a terminal and a prompt; lines may be in it.
func plain(text string, lines bool) bool {
	for _, r := range text {
		if content.Controls(r) && (!lines || r != '\n' && r != '\t') {
			return false
		}
	}
	return utf8.ValidString(text)
}

func TestTextsFromOutsideAreCleaned(t *testing.T) {
	if got := content.Clean("one\r\n\ttwo"); got != "one\n\ttwo" {
		t.Errorf("%q", got)
	}
	if got, want := content.Clean("\u009bm\u202ex\x9b"), "\uFFFDm\uFFFDx\uFFFD"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := content.OneLine(" a\u009b\u202e b\x1b\n\tc "), "a b c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := content.Clip("a\u009b\u202eb", 100), `a\u009b\u202eb`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, word := range []string{"שלום", "مرحبا", "naïve 日本 👩‍🚀", "a\tb"} { // the order of one word stays
		if content.Clean(word) != word || content.Clip(word, 100) != word {
			t.Errorf("%q is changed", word)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune(hostile+" é世"))).Draw(t, "text") + rapid.SampledFrom([]string{"", hostile, "\x9b", "\xc2"}).Draw(t, "end")
		for name, got := range map[string]string{"Clean": content.Clean(text), "OneLine": content.OneLine(text), "Line": content.Line(text, 40), "Clip": content.Clip(text, 1000)} {
			if !plain(strings.ReplaceAll(got, "\t", " "), name == "Clean") {
				t.Errorf("%s: %q", name, got)
			}
		}
		data, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			t.Fatal(err)
		}
		var before, after map[string]string
		escaped := content.EscapeJSON(data)
		if json.Unmarshal(data, &before) != nil || json.Unmarshal(escaped, &after) != nil || before["a"] != after["a"] || !plain(string(escaped), false) {
			t.Errorf("%q", escaped)
		}
	})
}

func TestNothingIsHiddenFromAPersonWhoDecides(t *testing.T) {
	for text, want := range map[string]string{
		"go test ./...\n\tx":     "go test ./...\n\tx",
		"a\x1b[2Kb\rc\x9b":       "a<U+001B>[2Kb<U+000D>c<0x9B>",
		"a\u202eb\u200bc\ufeff":  "a<U+202E>b<U+200B>c<U+FEFF>",
		"a\U000e0041\U000e0101b": "a<U+E0041><U+E0101>b",
		"naïve 日本 👩‍🚀 ☎️":        "naïve 日本 👩‍🚀 ☎️",
	} {
		if got := content.Visible(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune(hostile+" é世"))).Draw(t, "text") + rapid.SampledFrom([]string{"", hostile, "\x9b", "\xc2"}).Draw(t, "end")
		if got := content.Visible(text); !plain(got, true) {
			t.Errorf("%q", got)
		}
	})
}
