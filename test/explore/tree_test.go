package explore

import (
	"strings"
	"testing"
)

// TestEveryInterleavingOfATree explores an edge of a tree: interrupt, resume, cancel, the end of the parent, its deletion, late
// starts and late orders, and clients that act on the child alone.
func TestEveryInterleavingOfATree(t *testing.T) {
	t.Parallel()
	for _, c := range edges() {
		switch {
		case *large:
			c.edge.late, c.edge.again = 2, 1
		case testing.Short():
			c.edge.late, c.edge.again = 0, 0
		}
		t.Run(name(c.name), func(t *testing.T) {
			t.Parallel()
			r := Search[*edgeState, edgeAction](&c.edge, mostLarge)
			t.Logf("%d states, %d transitions, %d terminals, depth %d", r.States, r.Transitions, r.Terminals, r.Depth)
			if r.Broken != nil {
				t.Fatalf("%v\n%s", r.Broken, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

type namedEdge struct {
	name string
	edge edge
}

func edges() []namedEdge {
	return []namedEdge{
		{"a child that a client has work again", edge{parentInputs: []string{"cancel"}, childInputs: []string{"cancel child", "resume child"}, late: 1}},
		{"an interrupt, a resume and a cancel", edge{parentInputs: []string{"interrupt", "resume", "cancel"}, late: 1}},
		{"the end, and a client that cancels the child", edge{parentInputs: []string{"interrupt", "finish"}, childInputs: []string{"cancel child"}, again: 1}},
	}
}

// TestEachMutationOfATreeBreaksARule: the rules can fail.
func TestEachMutationOfATreeBreaksARule(t *testing.T) {
	if testing.Short() {
		t.Skip("explores spaces of up to 85,000 states")
	}
	t.Parallel()
	for _, c := range []struct {
		mutation Mutation
		by       string
	}{
		{OrdersUnversioned, "the child works, and its parent"},
		{StartUnseen, "the child works from its start"},
		{StopUnconfirmed, "the child works, and its parent"},
		{ReportForgotten, "stuck: the parent waits to stop"},
		{ChildForgotten, "orphan"},
	} {
		t.Run(name(string(c.mutation)), func(t *testing.T) {
			t.Parallel()
			var found []string
			for _, e := range edges() {
				e.edge.mutation = c.mutation
				r := Search[*edgeState, edgeAction](&e.edge, mostLarge)
				if r.Broken != nil && strings.Contains(r.Broken.Error(), c.by) {
					t.Logf("caught after %d steps: %v\n%s", len(r.Trace), r.Broken, strings.Join(r.Trace, "\n"))
					return
				}
				found = append(found, strings.Join(append(r.Trace, "broken: "+errorOf(r)), "\n"))
			}
			t.Errorf("not caught by %q:\n%s", c.by, strings.Join(found, "\n"))
		})
	}
}

func errorOf(r Result) string {
	if r.Broken == nil {
		return "nothing"
	}
	return r.Broken.Error()
}
