package contract

import (
	"regexp"
	"testing"
)

// TestFindOwn: what a text repeats of the given texts is no match, the rest is.
func TestFindOwn(t *testing.T) {
	for _, c := range []struct {
		text, pattern string
		given         []string
		want          string
	}{
		{"all pass: no such file", "all pass", nil, "all pass"},
		{"all pass: no such file", "all pass", []string{"all pass"}, ""},
		{"all pass: no such file", "all.*", []string{"all pass"}, ""},
		{"sh: 1: allpass: not found", "allpass", []string{"allpass --now"}, ""},
		{"sh: 1: ALLPASS: not found", "(?i)allpass", []string{"allpass --now"}, ""},
		{"x: no such file", "no such file", []string{"x"}, "no such file"},
		{"file x: all pass", "all pass", []string{"a"}, "all pass"},
		{"one all pass two", "two", []string{"all pass", ""}, "two"},
		{"é: é all pass", "é all", []string{"é"}, ""},
	} {
		got := ""
		if at := findOwn(regexp.MustCompile(c.pattern), c.text, c.given); at != nil {
			got = c.text[at[0]:at[1]]
		}
		if got != c.want {
			t.Errorf("%q in %q without %q: %q, want %q", c.pattern, c.text, c.given, got, c.want)
		}
	}
}
