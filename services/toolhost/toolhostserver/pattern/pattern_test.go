package pattern

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFindIsThatOfTheStandardLibrary, for short lines and for those that are read by
// character.
func TestFindIsThatOfTheStandardLibrary(t *testing.T) {
	long := strings.Repeat("x\xffy foo é", 40_000)
	for _, text := range []string{"foo", "fo+", `\bfoo\b`, "^foo", "foo$", "(?i)FOO", "é|bar", "bar", "x*", "(a|b)?foo.", "[^x]oo bar$", ""} {
		p, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"", "foo", "a foo b", "xfoo foo bar", "no", long, "foo" + long, long + "foo", long + "foo bar", long + "bar"} {
			got, want := p.Find(t.Context(), []byte(line)), regexp.MustCompile(text).FindIndex([]byte(line))
			if !slices.Equal(got, want) {
				t.Errorf("%q in %d bytes: got %v, want %v", text, len(line), got, want)
			}
		}
	}
}

func TestPatternsAreBounded(t *testing.T) {
	for text, ok := range map[string]bool{
		strings.Repeat("word|", 200):            true,
		"(a{40}b?){20}":                         true,
		strings.Repeat("(x?){1000}", 3):         true,
		strings.Repeat("(x?){1000}", 54):        false,
		strings.Repeat("((x?){50}){20}", 38):    false,
		"[" + strings.Repeat("a-z", 300) + "]*": true,
		"(":                                     false,
	} {
		if _, err := Compile(text); (err == nil) != ok {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// TestFindEndsWithItsContext: the slowest pattern that is accepted, on a line that would
// take minutes. The best of some attempts counts, because the machine may be busy.
func TestFindEndsWithItsContext(t *testing.T) {
	p, err := Compile(strings.Repeat("(a?){1000}", 3) + "b")
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("a"), 16<<20)
	best := time.Hour
	for range 5 {
		const limit = 20 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		begin := time.Now()
		if match := p.Find(ctx, line); match != nil {
			t.Errorf("found %v", match)
		}
		best = min(best, time.Since(begin)-limit)
		cancel()
	}
	if best > 250*time.Millisecond {
		t.Errorf("ended %v after its context", best)
	}
}
