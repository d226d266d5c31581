package input_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/input"
)

func TestWindowWith(t *testing.T) {
	for _, c := range []struct{ present, before, after, want uint32 }{
		{128_000, 128_000, 922_000, 922_000}, // the former model's window
		{922_000, 922_000, 128_000, 128_000},
		{64_000, 128_000, 922_000, 0}, // a limit of the run's own
		{64_000, 128_000, 32_000, 32_000},
		{0, 128_000, 32_000, 32_000}, // not resolved yet
		{128_000, 128_000, 0, 0},
	} {
		if got := input.WindowWith(c.present, c.before, c.after); got != c.want {
			t.Errorf("a run with %d and models with %d and %d: %d, want %d", c.present, c.before, c.after, got, c.want)
		}
	}
}
