package content_test

import (
	"encoding/json"
	"fmt"
	"slices"
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
		"go test ./...\n\tx":                      "go test ./...\n\tx",
		"a\x1b[2Kb\rc\x9b":                        "a<U+001B>[2Kb<U+000D>c<0x9B>",
		"a\u202eb\u200bc\ufeff":                   "a<U+202E>b<U+200B>c<U+FEFF>",
		"a\U000e0041\U000e0101b":                  "a<U+E0041><U+E0101>b",
		"naïve 日本 👩‍🚀 ☎️":                         "naïve 日本 👩‍🚀 ☎️",
		"rm\u00a0-rf\u2800x":                      "rm<U+00A0>-rf<U+2800>x",
		"a\u2003b\u3000c\u202fd":                  "a<U+2003>b<U+3000>c<U+202F>d",
		"a\u034fb\u17b4":                          "a<U+034F>b<U+17B4>",
		"e\u0301\u0323\u0336\u0337":               "e\u0301\u0323<U+0336><U+0337>",
		"/\u0338 -\u0336\ufe0f":                   "/<U+0338> -<U+0336>\ufe0f",
		"p\u0430yp\u0430l.com":                    "p<U+0430>yp<U+0430>l.com",
		"curl \u0440\u0430\u0443\u0440\u0430.com": "curl <U+0440><U+0430><U+0443><U+0440><U+0430>.com",
		"\u0441at /etc/\u03bfs":                   "<U+0441>at /etc/<U+03BF>s",
		"\U0001d69b\U0001d696 x":                  "<U+1D69B><U+1D696> x",
		// What people write stays.
		"cat файл.txt и сору": "cat файл.txt и сору",
		"Привет, мир":         "Привет, мир",
		"сор и ухо":           "сор и ухо",
		"Δt = 5 μm, λx":       "Δt = 5 μm, λx",
		"Pythonで書く 한국어test":   "Pythonで書く 한국어test",
		"ক্ষ हिन्दी में ภาษาที่ שָׁלוֹם":         "ক্ষ हिन्दी में ภาษาที่ שָׁלוֹם",
		"tiếng Việt e\u0302\u0301 1\ufe0f\u20e3": "tiếng Việt e\u0302\u0301 1\ufe0f\u20e3",
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

// TestInvisibleCharactersAreRemoved: what hides text from a reader goes, and what scripts and
// signs need stays.
func TestInvisibleCharactersAreRemoved(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"zero-width space":             {"pass\u200bword", "password"},
		"joiners between Latin":        {"a\u200cb\u200dc 1\u200d2", "abc 12"},
		"joiners in a row":             {"\u0645\u06cc\u200c\u200c\u200d\u062e", "\u0645\u06cc\u200c\u062e"},
		"joiner at the start":          {"\u200da\u200d", "a"},
		"joiner after white space":     {"\u0645 \u200c\u062e", "\u0645 \u062e"},
		"Persian":                      {"می\u200cخواهم", "می\u200cخواهم"},
		"Sinhala and Devanagari":       {"ශ්\u200dරී क्\u200dष", "ශ්\u200dරී क्\u200dष"},
		"emoji":                        {"👩\u200d🚀 👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 👨\u200d👩\u200d👧", "👩\u200d🚀 👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 👨\u200d👩\u200d👧"},
		"emoji joined with nothing":    {"👩\u200d and 👩\u200d\u200d🚀", "👩 and 👩\u200d🚀"},
		"keys":                         {"1\ufe0f\u20e3 #\ufe0f\u20e3", "1\ufe0f\u20e3 #\ufe0f\u20e3"},
		"selectors that carry bytes":   {"😀\ufe00\ufe01\U000e0101\U000e0150a\ufe0f", "😀\ufe00a"},
		"selectors after a letter":     {"a\U000e0141b \ufe0f", "ab "},
		"selectors of ideographs":      {"😀\U000e0101", "😀"},
		"variants of ideographs":       {"葛\U000e0100飾", "葛\U000e0100飾"},
		"tags":                         {"ok\U000e0001\U000e0049\U000e0067\U000e006e\U000e007f.", "ok."},
		"flag of a region":             {"🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "🏴"},
		"byte order mark":              {"\ufeffa\ufeffb", "ab"},
		"soft hyphen, word joiner":     {"a\u00adb\u2060c\u2061d\u2064", "abcd"},
		"fillers":                      {"a\u3164\u2065\U000e0fffb\u115fc\uffa0d\u034fe\u17b4f", "abcdef"},
		"annotations, deprecated":      {"a\ufff9b\u206ac\u180ed", "abcd"},
		"music and shorthand":          {"a\U0001d173b\U0001bca0c", "abc"},
		"overrides show":               {"a\u202eb\u2066c\u2069", "a\uFFFDb\uFFFDc\uFFFD"},
		"marks of direction":           {"a\u200eb\u200fc\u061cd", "abcd"},
		"marks of direction in Hebrew": {"שלום!\u200f C++\u200e\u200e", "שלום!\u200f C++\u200e"},
		"Arabic signs":                 {"\u06dd١ \u0600١", "\u06dd١ \u0600١"},
		"Mongolian":                    {"\u182d\u180b", "\u182d\u180b"},
		"Braille":                      {"⠋\u2800⠙", "⠋\u2800⠙"},
		"spaces":                       {"a\u00a0b\u3000c\u202fd", "a\u00a0b\u3000c\u202fd"},
	} {
		got := content.Clean(c.text)
		if got != c.want {
			t.Errorf("%s: %+q, want %+q", name, got, c.want)
		}
		if again := content.Clean(got); again != got {
			t.Errorf("%s: cleaned twice it is %+q", name, again)
		}
	}
	runes := []rune("a é世م😀👩\u200b\u200c\u200d\u200e\u200f\ufe0f\ufe00\ufeff\U000e0041\U000e0101\u00ad\u202e\u3164")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom(runes)).Draw(t, "text")
		got := content.Clean(text)
		if again := content.Clean(got); again != got {
			t.Errorf("%+q: %+q, and cleaned twice %+q", text, got, again)
		}
		if strings.ContainsAny(got, "\u200b\ufeff\U000e0041\u00ad\u3164") {
			t.Errorf("%+q", got)
		}
		visible := strings.Map(func(r rune) rune {
			if strings.ContainsRune("a é世م😀👩\uFFFD", r) {
				return r
			}
			return -1
		}, got)
		if want := strings.Map(func(r rune) rune {
			switch {
			case r == '\u202e':
				return '\uFFFD'
			case strings.ContainsRune("a é世م😀👩", r):
				return r
			}
			return -1
		}, text); visible != want {
			t.Errorf("%+q lost a visible character: %+q", text, got)
		}
	})
}

// TestDisguisedPartsAreNamed once each, and no more than a person reads.
func TestDisguisedPartsAreNamed(t *testing.T) {
	got := content.Disguised("cp a\u00a0b x\ncp a\u00a0b p\u0430y\nls -la\n")
	if want := []string{"a<U+00A0>b", "p<U+0430>y"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := content.Disguised("go test ./... | tail -20\nнайди файл"); got != nil {
		t.Errorf("%q", got)
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "%d\u2800%s ", i, strings.Repeat("\u2800", 1000))
	}
	if got := content.Disguised(many.String()); len(got) != 20 || len(got[0]) > 200 {
		t.Errorf("%d parts, %d bytes", len(got), len(got[0]))
	}
}
