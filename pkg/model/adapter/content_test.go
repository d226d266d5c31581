package adapter

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ message, key, want string }{
		{"a\n b\t c", "", "a b c"},
		{"with s3cret in it", "s3cret", "with [key] in it"},
		{"broken \xff text", "", "broken text"},
	} {
		if got := Clean(c.message, c.key); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.message, got, c.want)
		}
	}
	if got := Clean(strings.Repeat("ä", 1000), ""); len(got) > maxMessage+len("…") {
		t.Errorf("a long message has %d bytes, want at most %d", len(got), maxMessage)
	}
}
