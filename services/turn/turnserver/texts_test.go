package turnserver

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

func TestShorten(t *testing.T) {
	long := ""
	for i := range 4000 {
		long += strings.Repeat("wörd ", i%7) + "\n"
	}
	for name, text := range map[string]string{
		"short": "a few words", "lines": long, "one line": strings.Repeat("abc déf ", 20_000), "letters": strings.Repeat("a", 200_000),
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 1000
			got := shorten("openai:gpt-4o", text, limit)
			if n := tokens.Count("openai:gpt-4o", got); n > limit && len(text) > limit {
				t.Errorf("%d tokens are shown, at most %d may be", n, limit)
			}
			if !utf8.ValidString(got) {
				t.Error("not valid UTF-8")
			}
			if len(text) <= limit && got != text {
				t.Errorf("a short text was changed: %q", got)
			}
			if got != text && !strings.Contains(got, "left out here") {
				t.Errorf("no line names what is missing: %.80q", got)
			}
			if shorten("openai:gpt-4o", text, limit) != got {
				t.Error("the same text is shown differently")
			}
		})
	}
}
