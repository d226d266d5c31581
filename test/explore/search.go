package explore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// Machine is a system that Search walks through. S is a value: Apply does not
// change the state that it receives.
type Machine[S, A any] interface {
	// Start is the state that everything begins in.
	Start() S
	// Actions appends what may happen next in s.
	Actions(s S, into []A) []A
	// Apply carries an action out. An error is a rule that was broken by it; the
	// state is then the one in which it is.
	Apply(s S, a A) (S, error)
	// Fault reports whether an action is a fault, which may never happen: a crash, a
	// lost answer. All others happen eventually if nothing else does.
	Fault(a A) bool
	// Encode appends the canonical form of s: equal for states that no
	// rule distinguishes.
	Encode(s S, into []byte) []byte
	// CheckTerminal returns what is wrong with a state in which nothing but faults can happen.
	CheckTerminal(s S) error
	// Say puts an action that led from s to next into words.
	Explain(s S, a A, next S) string
}

// Result is what Search has seen.
type Result struct {
	States, Transitions int
	// Terminals is the number of states in which only faults can happen.
	Terminals int
	// Depth is the length of the longest of all shortest ways to a state.
	Depth int
	// Broken is the rule that was broken first; nil when none was.
	Broken error
	// Trace is a shortest way there, a line for each step.
	Trace []string
}

var (
	// ErrTooLarge reports whether there are more states than were allowed.
	ErrTooLarge = errors.New("the space is larger than was allowed")
	// ErrCycle reports whether without any fault the system can go round for ever.
	ErrCycle = errors.New("livelock: without any fault the system comes back to a state that it was in")
)

// digest stands for a state in the set of those visited. Of ten million states
// two share one with a probability below 1e-24.
type digest [16]byte

type node[A any] struct {
	parent uint32
	by     A
}

type search[S, A any] struct {
	machine Machine[S, A]
	nodes   []node[A]
	seen    map[digest]uint32
	level   []S // states of the present depth, in the order of their nodes
	next    []S
	code    []byte
	// Edges without faults, those of node n at edges[from[n]:from[n+1]].
	edges []uint32
	from  []uint32
}

// Search visits every state that can be reached, nearest first, and stops at the
// first that breaks a rule. It gives up when there are more than limit states.
func Search[S, A any](m Machine[S, A], limit int) Result {
	x := &search[S, A]{machine: m, seen: map[digest]uint32{}}
	var r Result
	x.reach(m.Start(), 0, *new(A))
	x.level, x.next = x.next, x.level
	var actions []A
	for first := uint32(0); len(x.level) > 0; r.Depth++ {
		for i, s := range x.level {
			at := first + uint32(i)
			x.from = append(x.from, uint32(len(x.edges)))
			actions = m.Actions(s, actions[:0])
			free := 0
			for _, a := range actions {
				next, err := m.Apply(s, a)
				r.Transitions++
				if err != nil {
					r.States, r.Broken, r.Trace = len(x.nodes), err, append(x.trace(at), m.Explain(s, a, next))
					return r
				}
				to := x.reach(next, at, a)
				if !m.Fault(a) {
					free++
					x.edges = append(x.edges, to)
				}
			}
			if free == 0 {
				r.Terminals++
				if err := m.CheckTerminal(s); err != nil {
					r.States, r.Broken, r.Trace = len(x.nodes), err, x.trace(at)
					return r
				}
			}
			if len(x.nodes) > limit {
				r.States, r.Broken = len(x.nodes), fmt.Errorf("%w: %d states", ErrTooLarge, limit)
				return r
			}
		}
		first += uint32(len(x.level))
		x.level, x.next = x.next, x.level[:0]
	}
	r.States, r.Depth = len(x.nodes), r.Depth-1
	x.from = append(x.from, uint32(len(x.edges)))
	if cycle := x.cycle(); cycle != nil {
		r.Broken, r.Trace = ErrCycle, x.trace(cycle[0])
		for _, n := range cycle[1:] {
			r.Trace = append(r.Trace, "and round: "+last(x.trace(n)))
		}
	}
	return r
}

// reach notes a state and returns its node.
func (x *search[S, A]) reach(s S, parent uint32, by A) uint32 {
	x.code = x.machine.Encode(s, x.code[:0])
	sum := sha256.Sum256(x.code)
	key := digest(sum[:16])
	if n, known := x.seen[key]; known {
		return n
	}
	n := uint32(len(x.nodes))
	x.seen[key] = n
	x.nodes = append(x.nodes, node[A]{parent: parent, by: by})
	x.next = append(x.next, s)
	return n
}

// trace is the way to a node in words.
func (x *search[S, A]) trace(n uint32) []string {
	var way []A
	for ; n != 0; n = x.nodes[n].parent {
		way = append(way, x.nodes[n].by)
	}
	slices.Reverse(way)
	s := x.machine.Start()
	var lines []string
	for _, a := range way {
		next, _ := x.machine.Apply(s, a)
		lines = append(lines, x.machine.Explain(s, a, next))
		s = next
	}
	return lines
}

// cycle returns nodes that the system goes round without faults; nil when there
// are none.
func (x *search[S, A]) cycle() []uint32 {
	const (
		fresh = iota
		open
		closed
	)
	state := make([]byte, len(x.nodes))
	at := slices.Clone(x.from) // next edge of each node to follow
	for root := range x.nodes {
		if state[root] != fresh {
			continue
		}
		path := []uint32{uint32(root)}
		state[root] = open
		for len(path) > 0 {
			n := path[len(path)-1]
			if at[n] == x.from[n+1] {
				state[n] = closed
				path = path[:len(path)-1]
				continue
			}
			to := x.edges[at[n]]
			at[n]++
			switch state[to] {
			case open:
				return append(path[slices.Index(path, to):], to)
			case fresh:
				state[to] = open
				path = append(path, to)
			}
		}
	}
	return nil
}

func last(lines []string) string {
	if len(lines) == 0 {
		return "the start"
	}
	return lines[len(lines)-1]
}
