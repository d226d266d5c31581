package simulation

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// TestReproduces runs seeds twice and compares their traces.
func TestReproduces(t *testing.T) {
	for seed := range uint64(*repeated) {
		cfg, m := shape(seed)
		first, second := sim.Try(t, cfg, m.start), sim.Try(t, cfg, m.start)
		if first.Hash != second.Hash {
			t.Errorf("seed %d went another way the second time", seed)
			logParting(t, first, second)
		}
	}
}

// logParting logs where two traces differ first.
func logParting(t *testing.T, first, second sim.Result) {
	t.Helper()
	a, b := first.Trace(0), second.Trace(0)
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	t.Logf("seed %d went another way the second time, from step %d on", first.Seed, at+1)
	for _, lines := range [][]string{a, b} {
		for _, line := range lines[max(0, at-12):min(len(lines), at+6)] {
			t.Log(line)
		}
		t.Log("…")
	}
}
