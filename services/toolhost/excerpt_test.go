package toolhost

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExcerptKeepsAllThatFits(t *testing.T) {
	e := NewExcerpt(4, 4)
	for _, b := range []byte("12345678") {
		_, _ = e.Write([]byte{b})
	}
	if got := e.Text(""); got != "12345678" {
		t.Fatalf("got %q", got)
	}
}

func TestExcerptCutsAtLines(t *testing.T) {
	e := NewExcerpt(20, 20)
	for i := range 100 {
		_, _ = fmt.Fprintf(e, "line %03d\n", i)
	}
	const want = "line 000\nline 001\n[864 bytes (96 lines) left out here. Look again.]\nline 098\nline 099\n"
	if got := e.Text("Look again."); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestExcerptIsBounded(t *testing.T) {
	e := NewExcerpt(100, 100)
	for range 1000 {
		_, _ = e.Write(make([]byte, 997))
	}
	if cap(e.head)+cap(e.tail) > 1000 {
		t.Fatalf("the excerpt has %d bytes", cap(e.head)+cap(e.tail))
	}
	if got := e.Text(""); !strings.Contains(got, "[996800 bytes (0 lines) left out here.") || len(got) > 1000 {
		t.Fatalf("got %q", got)
	}
}

func TestReadable(t *testing.T) {
	for in, want := range map[string]string{"é": "é", "\xffa": "\uFFFDa", "a\x00b": "a\uFFFDb"} {
		if got := Readable(in); got != want {
			t.Errorf("Readable(%q) = %q", in, got)
		}
	}
	if got := Clip("éé", 3); got != "é…" {
		t.Errorf("Clip = %q", got)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a\nb\n", 3)
	f.Add("\xff\x00é", 2)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 2 || limit > 1<<16 {
			return
		}
		got := Cut(text, limit, "h")
		if !utf8.ValidString(got) || len(got) > 3*limit+100 {
			t.Fatalf("%d bytes of %d: %q", len(got), limit, got)
		}
	})
}
