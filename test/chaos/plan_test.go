package chaos

import (
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
