package toolhost

import (
	"strings"
	"testing"
	"time"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.go", "a.go", true},
		{"*.go", "x/y/a.go", true},
		{"./*.go", "a.go", true},
		{"x/*.go", "x/a.go", true},
		{"x/*.go", "x/y/a.go", false},
		{"x/**/*.go", "x/a.go", true},
		{"x/**/*.go", "x/y/z/a.go", true},
		{"**/a.go", "a.go", true},
		{"**", "any/thing", true},
		{"x/", "x/y/z", true},
		{"x/**", "y/x/z", false},
		{"*.{ts,tsx}", "a.tsx", true},
		{"{x,y/{a,b}}/c", "y/b/c", true},
		{"{x,y/{a,b}}/c", "y/c", false},
		{"{x}", "{x}", true},
		{"[a-c]?.txt", "b1.txt", true},
		{"[a-c]?.txt", "d1.txt", false},
	} {
		g, err := ParseGlob(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Match(c.name); got != c.want {
			t.Errorf("%q matches %q = %v", c.pattern, c.name, got)
		}
	}
}

func TestParseGlobRejectsInvalidPatterns(t *testing.T) {
	for _, p := range []string{"[", "a/[b/c", strings.Repeat("{a,b}", 12)} {
		if _, err := ParseGlob(p); err == nil {
			t.Errorf("%q accepted", p)
		}
	}
}

func TestGlobMatchTimeIsBounded(t *testing.T) {
	g, err := ParseGlob(strings.Repeat("**/*a/", 60) + "b")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if g.Match(strings.Repeat("aaaa/", 200) + "c") {
		t.Fatal("matches")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Fatalf("took %v", took)
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a/**/{b,c}/[x-z]*", "a/b/c/x")
	f.Fuzz(func(_ *testing.T, pattern, name string) {
		if len(pattern) > 200 || len(name) > 200 {
			return
		}
		if g, err := ParseGlob(pattern); err == nil {
			g.Match(name)
		}
	})
}
