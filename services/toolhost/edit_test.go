package toolhost

import (
	"strings"
	"testing"
)

func TestReplaceOnce(t *testing.T) {
	for name, c := range map[string]struct{ content, old, replacement, want, err string }{
		"once":             {"a\nb\nc\n", "b", "B", "a\nB\nc\n", ""},
		"deletes":          {"a\nb\n", "b\n", "", "a\n", ""},
		"not found":        {"a", "x", "y", "", "was not found"},
		"spaces differ":    {"\tif x {\n", "  if x {\n", "y", "", "only spaces, tabs"},
		"line ends differ": {"a\r\nb\r\n", "a\nb", "y", "y\r\n", ""},

		"a new line in CRLF":             {"one\r\ntwo\r\nthree\r\n", "three", "tres\nquatro", "one\r\ntwo\r\ntres\r\nquatro\r\n", ""},
		"two lines in CRLF":              {"one\r\ntwo\r\nthree\r\n", "one\ntwo", "uno\ndos", "uno\r\ndos\r\nthree\r\n", ""},
		"CRLF in LF":                     {"one\ntwo\nthree\n", "one\r\ntwo", "uno\r\ndos", "uno\ndos\nthree\n", ""},
		"CRLF for a word in LF":          {"one\ntwo\n", "one", "uno\r\ndos", "uno\ndos\ntwo\n", ""},
		"exact, but new with LF":         {"one\r\ntwo\r\n", "one\r\n", "uno\ndos\n", "uno\r\ndos\r\ntwo\r\n", ""},
		"line ends alone are what to do": {"one\r\ntwo\r\n", "one\r\n", "one\n", "one\ntwo\r\n", ""},
		"no difference in this file":     {"one\r\ntwo", "one\ntwo", "one\r\ntwo", "", "nothing to change"},
		"from the line end on":           {"one\r\ntwo\r\n", "\ntwo", "\nx\ny", "one\r\nx\r\ny\r\n", ""},
		"up to half of a line end":       {"one\r\ntwo\r\n", "one\r", "x\r", "x\r\ntwo\r\n", ""},
		"the last line":                  {"one\r\ntwo", "two", "x\ny", "one\r\nx\r\ny", ""},
		"mixed, lines that stay":         {"a\r\nb\nc\r\nd\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\nd\n", ""},
		"mixed, a line more":             {"a\nb\r\nc\nd\r\n", "b\nc\nd", "b\nx\nc\nd", "a\nb\r\nx\r\nc\nd\r\n", ""},
		"mixed, the place is LF":         {"a\r\nb\nc\r\n", "b", "x\ny", "a\r\nx\ny\nc\r\n", ""},
		"mixed, the exact text counts":   {"a\r\nb\na\nb\n", "a\nb", "x", "a\r\nb\nx\n", ""},
		"mixed, twice":                   {"a\r\nb\r\na\nb\r\n", "a\nb\n", "x", "", "found 2 times (lines 1, 3)"},
		"BOM stays":                      {"\ufeffone\r\ntwo\r\n", "one\ntwo", "uno\ndos", "\ufeffuno\r\ndos\r\n", ""},
		"CR alone":                       {"one\rtwo\rthree\r", "one\ntwo", "uno\ndos\nx", "uno\rdos\rx\rthree\r", ""},
		"Latin-1 stays":                  {"caf\xe9\r\ntwo\r\n", "two", "x\ny", "caf\xe9\r\nx\r\ny\r\n", ""},
		"a deleted line":                 {"a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n", ""},
		"spaces differ too":              {"\ta\r\nb\r\n", "  a\nb", "x", "", "only spaces, tabs"},
		"twice":                          {"x\ny\nx\n", "x", "z", "", "found 2 times (lines 1, 3)"},
		"overlapping":                    {"aaa", "aa", "b", "", "found 2 times"},
		"many":                           {strings.Repeat("x\n", 9), "x", "z", "", "found 9 times (lines 1, 2, 3, 4, 5, …)"},
		"very many":                      {strings.Repeat("a", 1<<24), strings.Repeat("a", 1<<20), "x", "", "found at least 100 times (lines 1, 1, 1, 1, 1, …)"},
		"blank ends":                     {" a\n b ", "a  b", "x", "", "only spaces, tabs"},
		"empty":                          {"a", "", "b", "", "old is empty"},
		"same":                           {"a", "a", "a", "", "same text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := ReplaceOnce(c.content, c.old, c.replacement)
			if c.err == "" && (err != nil || got != c.want) {
				t.Fatalf("got %q, %v", got, err)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
		})
	}
	if _, line, _ := ReplaceOnce("a\nb\nc", "c", "d"); line != 3 {
		t.Errorf("line %d", line)
	}
}

func TestRewriteKeepsLineEnds(t *testing.T) {
	for name, c := range map[string]struct{ before, content, want, kept string }{
		"new":               {"", "a\nb\n", "a\nb\n", ""},
		"LF":                {"a\nb\n", "x\ny\n", "x\ny\n", ""},
		"CRLF":              {"a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n", "CRLF"},
		"CRLF, last line":   {"a\r\nb", "a\nb\nc", "a\r\nb\r\nc", "CRLF"},
		"CRLF is written":   {"a\r\nb\r\n", "a\r\nb\n", "a\r\nb\n", ""},
		"CRLF for LF":       {"a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n", ""},
		"mixed":             {"a\r\nb\nc\r\n", "a\nb\nX\nc\n", "a\r\nb\nX\r\nc\r\n", "CRLF"},
		"BOM":               {"\ufeffa\r\nb\r\n", "x\ny\n", "\ufeffx\r\ny\r\n", "CRLF"},
		"BOM, LF":           {"\ufeffa\n", "x\n", "\ufeffx\n", ""},
		"BOM is written":    {"\ufeffa\n", "\ufeffx\n", "\ufeffx\n", ""},
		"emptied":           {"\ufeffa\r\n", "", "", ""},
		"CR":                {"a\rb\r", "x\ny\n", "x\ry\r", "CR"},
		"one line":          {"a", "x\ny", "x\ny", ""},
		"no text":           {"a\r\n\x00", "x\n", "x\n", ""},
		"a single return":   {"a\rb\nc\n", "x\ny\n", "x\ny\n", ""},
		"returns in the LF": {"a\nb\nc\r\n", "a\nb\nc\nd\n", "a\nb\nc\r\nd\n", "CRLF"},
	} {
		t.Run(name, func(t *testing.T) {
			got, kept := Rewrite(c.before, c.content)
			if got != c.want || kept != c.kept {
				t.Fatalf("got %q, %q", got, kept)
			}
			if again, _ := Rewrite(got, c.content); again != got {
				t.Errorf("again: %q", again)
			}
		})
	}
}

func FuzzLineEnds(f *testing.F) {
	f.Add("a\r\nb\nc\r\n", "b\nc", "x\ny")
	f.Add("a\rb\r", "a\nb", "x\n")
	f.Fuzz(func(t *testing.T, content, old, replacement string) {
		edited, _, err := ReplaceOnce(content, old, replacement)
		if err == nil && strings.Contains(content, "\r\n") && strings.Count(content, "\r\n") == strings.Count(content, "\n") &&
			strings.Count(content, "\r") == strings.Count(content, "\n") && !strings.Contains(old, "\r") && !strings.Contains(replacement, "\r") &&
			strings.Count(edited, "\r\n") != strings.Count(edited, "\n") {
			t.Errorf("mixed: %q, %q, %q: %q", content, old, replacement, edited)
		}
		stored, _ := Rewrite(content, replacement)
		if again, _ := Rewrite(stored, replacement); again != stored {
			t.Errorf("again: %q, %q: %q, %q", content, replacement, stored, again)
		}
		if !strings.Contains(replacement, "\r") && strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(stored, "\ufeff"), "\r\n", "\n"), "\r", "\n") != strings.TrimPrefix(replacement, "\ufeff") {
			t.Errorf("other text: %q, %q: %q", content, replacement, stored)
		}
	})
}
