package glob_test

import (
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/glob"
)

func parse(t testing.TB, text string) glob.Pattern {
	t.Helper()
	p, err := glob.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.go", "a.go", true},
		{"*.go", "x/a.go", false},
		{"x/*.go", "x/a.go", true},
		{"x/*.go", "x/y/a.go", false},
		{"x/**/*.go", "x/a.go", true},
		{"x/**/*.go", "x/y/z/a.go", true},
		{"**/a.go", "a.go", true},
		{"**", "any/thing", true},
		{"**", "", true},
		{"x/**", "x", true},
		{"x/**", "y/x/z", false},
		{"x/**/**/y", "x/y", true},
		{"**a", "x/a", false},
		{"**a", "xa", true},
		{"[a-c]?.txt", "b1.txt", true},
		{"[a-c]?.txt", "d1.txt", false},
		{"[^a].txt", "b.txt", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{"{a,b}", "a", false},
		{"/a", "a", false},
		{"a/", "a", false},
		{"a//b", "a/b", false},
		{"A", "a", false},
	} {
		if got := parse(t, c.pattern).Match(c.name); got != c.want {
			t.Errorf("%q matches %q = %v", c.pattern, c.name, got)
		}
	}
}

func TestParseNamesTheBadName(t *testing.T) {
	for pattern, name := range map[string]string{"[": "[", "a/[b/c": "[b", `a/b\`: `b\`, "[]a]": "[]a]", "x/[z-a/**": "[z-a"} {
		_, err := glob.Parse(pattern)
		var bad *glob.NameError
		if !errors.As(err, &bad) || bad.Name != name || !errors.Is(err, path.ErrBadPattern) || !strings.HasSuffix(err.Error(), name) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// slow is what Match computes, by trying each length of each **.
func slow(pattern, names []string) bool {
	switch {
	case len(pattern) == 0:
		return len(names) == 0
	case pattern[0] == "**":
		for n := range len(names) + 1 {
			if slow(pattern[1:], names[n:]) {
				return true
			}
		}
		return false
	case len(names) == 0:
		return false
	}
	matches, _ := path.Match(pattern[0], names[0])
	return matches && slow(pattern[1:], names[1:])
}

func TestMatchIsThatOfTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SliceOfN(rapid.SampledFrom([]string{"**", "*", "a", "b", "?", "a*", "[ab]", "[^a]", "**a"}), 1, 6).Draw(t, "pattern")
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "c", "", "xa"}), 1, 6).Draw(t, "names")
		p, err := glob.Parse(strings.Join(pattern, "/"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.Match(strings.Join(names, "/")), slow(pattern, names); got != want {
			t.Errorf("%q matches %q = %v, want %v", pattern, names, got, want)
		}
	})
}

func TestMatchTimeIsBounded(t *testing.T) {
	p := parse(t, strings.Repeat("**/*a/", 60)+"b")
	begin := time.Now()
	if p.Match(strings.Repeat("aaaa/", 200) + "c") {
		t.Fatal("matches")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Fatalf("took %v", took)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a/**/[x-z]*", "a/b/c/x")
	f.Add("docs/**", "docs/../src/a.go")
	f.Add(`\[/**/?`, "[/a/b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 60 || len(name) > 60 {
			return
		}
		p, err := glob.Parse(pattern)
		if err != nil {
			return
		}
		if got, want := p.Match(name), slow(p, strings.Split(name, "/")); got != want {
			t.Errorf("%q matches %q = %v, want %v", pattern, name, got, want)
		}
	})
}
