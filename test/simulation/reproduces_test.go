package simulation

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/sim"
)

// TestReproduces runs seeds twice and expects the same trace. Where production code
// finds two channels of a select ready at the same instant Go draws one, which no seed
// decides. Few seeds come to such a place; only so many are put up with.
func TestReproduces(t *testing.T) {
	parted := 0
	for seed := range uint64(*repeated) {
		cfg, m := shape(seed)
		first, second := sim.Try(t, cfg, m.start), sim.Try(t, cfg, m.start)
		if first.Hash != second.Hash {
			parted++
			logParting(t, first, second)
		}
	}
	if most := 2 + *repeated/100; parted > most {
		t.Errorf("%d of %d seeds went another way the second time, %d are put up with", parted, *repeated, most)
	}
}

// logParting shows where two traces part.
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
