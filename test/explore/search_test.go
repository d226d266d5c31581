package explore

import (
	"errors"
	"fmt"
	"testing"
)

// steps is a machine of numbered places.
type steps struct {
	ways   map[int][]int // from each place
	faulty map[int]bool  // ways to these places are faults
	wrong  map[int]bool  // places that break a rule
	bad    map[int]bool  // places that must not be terminal
}

func (m steps) Start() int { return 0 }

func (m steps) Actions(s int, into []int) []int { return append(into, m.ways[s]...) }

func (m steps) Apply(_, a int) (int, error) {
	if m.wrong[a] {
		return a, fmt.Errorf("came to %d", a)
	}
	return a, nil
}

func (m steps) Fault(a int) bool { return m.faulty[a] }

func (m steps) Encode(s int, into []byte) []byte { return append(into, byte(s)) }

func (m steps) CheckTerminal(s int) error {
	if m.bad[s] {
		return fmt.Errorf("terminal at %d", s)
	}
	return nil
}

func (m steps) Explain(s, _, next int) string { return fmt.Sprintf("%d-%d", s, next) }

func TestSearchVisitsEveryStateOnce(t *testing.T) {
	r := Search(steps{ways: map[int][]int{0: {1, 2}, 1: {3}, 2: {3}, 3: {4}}}, 10)
	if r.Broken != nil || r.States != 5 || r.Transitions != 5 || r.Depth != 3 || r.Terminals != 1 {
		t.Errorf("%+v", r)
	}
}

func TestSearchFindsTheShortestWay(t *testing.T) {
	ways := map[int][]int{0: {1, 2}, 1: {5}, 5: {6}, 2: {6}, 6: {7}}
	for what, m := range map[string]steps{
		"came to 7":     {ways: ways, wrong: map[int]bool{7: true}},
		"terminal at 7": {ways: ways, bad: map[int]bool{7: true}},
	} {
		r := Search(m, 10)
		if r.Broken == nil || r.Broken.Error() != what || fmt.Sprint(r.Trace) != "[0-2 2-6 6-7]" {
			t.Errorf("%s: %v by %v", what, r.Broken, r.Trace)
		}
	}
}

// TestSearchIgnoresFaultsInTerminals: a state in which only faults can happen is
// terminal.
func TestSearchIgnoresFaultsInTerminals(t *testing.T) {
	r := Search(steps{ways: map[int][]int{0: {1}, 1: {2}}, faulty: map[int]bool{2: true}, bad: map[int]bool{1: true}}, 10)
	if r.Broken == nil || r.Broken.Error() != "terminal at 1" {
		t.Errorf("%+v", r)
	}
}

func TestSearchFindsCyclesWithoutFaults(t *testing.T) {
	ways := map[int][]int{0: {1}, 1: {2}, 2: {3}, 3: {1, 4}}
	r := Search(steps{ways: ways}, 10)
	if !errors.Is(r.Broken, ErrCycle) || len(r.Trace) != 4 {
		t.Errorf("%v by %v", r.Broken, r.Trace)
	}
	if r := Search(steps{ways: ways, faulty: map[int]bool{1: true}}, 10); r.Broken != nil {
		t.Errorf("a cycle that needs a fault: %v", r.Broken)
	}
}

func TestSearchGivesUpOnSpacesThatAreTooLarge(t *testing.T) {
	if r := Search(steps{ways: map[int][]int{0: {1}, 1: {2}, 2: {3}}}, 2); !errors.Is(r.Broken, ErrTooLarge) {
		t.Errorf("%+v", r)
	}
}
