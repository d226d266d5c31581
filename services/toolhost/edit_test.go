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
		"line ends differ": {"a\r\nb\r\n", "a\nb", "y", "", "CRLF"},
		"twice":            {"x\ny\nx\n", "x", "z", "", "found 2 times (lines 1, 3)"},
		"overlapping":      {"aaa", "aa", "b", "", "found 2 times"},
		"many":             {strings.Repeat("x\n", 9), "x", "z", "", "found 9 times (lines 1, 2, 3, 4, 5, …)"},
		"very many":        {strings.Repeat("a", 1<<24), strings.Repeat("a", 1<<20), "x", "", "found at least 100 times (lines 1, 1, 1, 1, 1, …)"},
		"blank ends":       {" a\n b ", "a  b", "x", "", "only spaces, tabs"},
		"empty":            {"a", "", "b", "", "old is empty"},
		"same":             {"a", "a", "a", "", "same text"},
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
