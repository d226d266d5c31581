package shown

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestShorteningCountsLittle: the number of counted bytes of a long text depends on the
// limit, and not on the text.
func TestShorteningCountsLittle(t *testing.T) {
	for name, text := range map[string]string{
		"lines": strings.Repeat("a line of a file\n", 600_000), "one word": strings.Repeat("abcdefgh", 1_250_000), "numbers": strings.Repeat("0123456789 ", 900_000),
	} {
		c := newCutter(key{message: &harnessv1.Message{Id: 1}, model: "openai:gpt-4o", limit: 10_000, refs: true})
		count, bytes := c.count, 0
		c.count = func(text string) int {
			bytes += len(text)
			return count(text)
		}
		if got := c.result(text); len(got) > 200_000 || bytes > 100*c.limit {
			t.Errorf("%s: %d bytes were counted to show %d of %d", name, bytes, len(got), len(text))
		}
	}
}

// TestTheWholeCutIsCounted: where head, line and tail together have more tokens than each
// alone, less of them is shown.
func TestTheWholeCutIsCounted(t *testing.T) {
	for joined := range 40 {
		c := newCutter(key{message: &harnessv1.Message{Id: 1}, limit: 400})
		c.count = func(text string) int { return len(text) + joined*strings.Count(text, "\n[") }
		if got := c.result(strings.Repeat("a", 1000)); c.count(got) > c.limit || c.count(got) < c.limit/2 {
			t.Errorf("%d tokens are shown, at most %d may be", c.count(got), c.limit)
		}
	}
}
