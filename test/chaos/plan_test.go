package chaos

import (
	"math"
	"testing"
	"time"
)

// TestPlan: a seed determines the faults, another one has others, and the first faults have
// each kind.
func TestPlan(t *testing.T) {
	t.Parallel()
	roles := []string{"turn", "gateway"}
	a, again, other := Plan(1, roles, time.Second), Plan(1, roles, time.Second), Plan(2, roles, time.Second)
	kinds, differ := map[Kind]bool{}, false
	for n := range 200 {
		f := a()
		if g := again(); f != g {
			t.Fatalf("fault %d is %v, then %v", n, f, g)
		}
		differ = differ || f != other()
		if n < len(weights) {
			kinds[f.Kind] = true
		}
		if f.Kind == "" || f.Role == "" || f.Records < 1 || f.For >= 2*time.Second || f.After <= 0 {
			t.Errorf("fault %d is %+v", n, f)
		}
	}
	if len(kinds) != len(weights) || !differ {
		t.Errorf("the first faults have %d kinds of %d; plans of two seeds differ: %v", len(kinds), len(weights), differ)
	}
}

// TestMissed: events of lost records may be missing, and nothing else may differ.
func TestMissed(t *testing.T) {
	t.Parallel()
	want := []string{"1-0", "2-0", "2-1", "3-0"}
	for name, c := range map[string]struct {
		got    []string
		missed int
	}{
		"all":                  {want, 0},
		"a part of one record": {[]string{"1-0", "2-0", "3-0"}, 1},
		"two records":          {[]string{"2-0", "2-1"}, 2},
		"another event":        {[]string{"1-0", "2-0", "2-1", "3-0", "4-0"}, math.MaxInt},
		"another order":        {[]string{"2-0", "1-0", "2-1", "3-0"}, math.MaxInt},
	} {
		if got := missed(c.got, want); got != c.missed {
			t.Errorf("%s: %d records, want %d", name, got, c.missed)
		}
	}
}
