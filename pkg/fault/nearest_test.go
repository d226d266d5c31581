package fault_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

func TestNearestName(t *testing.T) {
	known := []string{"max_turns", "model", "mode", "tools", "when", "id"}
	for name, want := range map[string]string{
		"moddel": "model", "MaxTurns": "max_turns", "max-turn": "max_turns", "tool": "tools",
		"wen": "when", "ID": "id", "ix": "", "shape": "", "": "", "tls": "", strings.Repeat("m", 1<<20): "",
	} {
		if got := fault.Nearest(name, known); got != want {
			t.Errorf("%.20q: got %q, want %q", name, got, want)
		}
	}
	if got := fault.Nearest("mod", nil); got != "" {
		t.Errorf("got %q of no names", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 2}, {"abc", "abc", 0},
	} {
		if got := fault.EditDistance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
