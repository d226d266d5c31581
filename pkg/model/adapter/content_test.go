package adapter

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ message, key, want string }{
		{"a\n b\t c", "", "a b c"},
		{"with s3cret-012345678 in it", "s3cret-012345678", "with [key] in it"},
		{"'s3cret-012345678'.", "s3cret-012345678", "'[key]'."},
		{"the latest test", "test", "the latest test"},
		{"s3cret-01234567", "s3cret-01234567", "s3cret-01234567"},
		{"as3cret-012345678 s3cret-0123456789", "s3cret-012345678", "as3cret-012345678 s3cret-0123456789"},
		{"broken \xff text", "", "broken text"},
		{"no\x1b]0;t\x07\u009b2J\u202e quota", "", "no ]0;t 2J quota"},
		{`{"e":"\ns3cret-012345678\u000as3cret-012345678"}`, "s3cret-012345678", `{"e":"\n[key]\u000a[key]"}`},
		{"?key=%20s3cret-012345678", "s3cret-012345678", "?key=%20[key]"},
	} {
		if got := Clean(c.message, c.key); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.message, got, c.want)
		}
	}
	long := strings.Repeat("x ", maxMessage/2-5) + "s3cret-012345678 other-key-0123456"
	if got := Clean(long, "s3cret-012345678", "other-key-0123456"); strings.Contains(got, "other-") || strings.Contains(got, "s3c") {
		t.Errorf("a key at the end of a message is part of %q", got)
	}
	if got := Clean(strings.Repeat("ä", 1000)); len(got) > maxMessage+len("…") {
		t.Errorf("a long message has %d bytes, want at most %d", len(got), maxMessage)
	}
}
