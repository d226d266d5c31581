package toolhost

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestRecent(t *testing.T) {
	long := strings.Repeat("0123456789", 1000)
	for name, c := range map[string]struct {
		written []string
		offset  uint64
		from    uint64
		text    string
	}{
		"nothing":                                 {nil, 0, 0, ""},
		"all of it":                               {[]string{"one\n", "two\n"}, 0, 0, "one\ntwo\n"},
		"the rest":                                {[]string{"one\n", "two\n"}, 4, 4, "two\n"},
		"no more":                                 {[]string{"one\n"}, 4, 4, ""},
		"an offset of another host":               {[]string{"one\n"}, 400, 4, ""},
		"what is too long is skipped":             {[]string{long}, 0, 10_000 - RecentBytes, long[10_000-RecentBytes:]},
		"and so it is in small pieces":            {[]string{long[:9_000], long[9_000:]}, 100, 10_000 - RecentBytes, long[10_000-RecentBytes:]},
		"a part of a character waits":             {[]string{"a\xc3"}, 0, 0, "a"},
		"the character is shown when it is there": {[]string{"a\xc3", "\xa4b"}, 1, 1, "äb"},
		"bytes that are no characters":            {[]string{"a\xff\x00b"}, 0, 0, "a??b"},
		"a skip does not end in a character":      {[]string{"ä" + strings.Repeat("x", RecentBytes-1)}, 0, 2, strings.Repeat("x", RecentBytes-1)},
	} {
		var r Recent
		for _, w := range c.written {
			_, _ = r.Write([]byte(w))
		}
		if from, text := r.After(c.offset); from != c.from || text != c.text {
			t.Errorf("%s: %d %q, want %d %q", name, from, text, c.from, c.text)
		}
	}
}

// A reader who is quick enough gets everything, in characters, each byte once.
func TestRecentReadInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Recent
		var whole, got string
		for i := range rapid.IntRange(1, 20).Draw(t, "writes") {
			piece := string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, fmt.Sprint(i)))
			whole += piece
			_, _ = r.Write([]byte(piece))
			from, text := r.After(uint64(len(got)))
			if from != uint64(len(got)) || !utf8.ValidString(text) {
				t.Fatalf("%q from %d, after %d", text, from, len(got))
			}
			got += text
		}
		if len(whole)-len(got) >= utf8.UTFMax {
			t.Fatalf("%d of %d bytes", len(got), len(whole))
		}
		for i := range got {
			if got[i] != whole[i] && got[i] != '?' {
				t.Fatalf("%q is not %q", got, whole)
			}
		}
	})
}
