package explore

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// CheckTerminal returns what is wrong with both runs when nothing is on its way any more.
func (m *edge) CheckTerminal(s *edgeState) error {
	c := s.s.GetChildren()[0]
	switch {
	case s.parent == edgeGone && s.exists:
		return fmt.Errorf("orphan: the parent is deleted, and the child %s", edgeWords[s.child])
	case s.parent == edgeGone:
		return nil
	case s.stopping != "":
		return fmt.Errorf("stuck: the parent waits to stop (%s), and the child %s", s.stopping, edgeWords[s.child])
	case s.free:
		return nil
	case s.parent == edgeWaits && tree.Ended(c) != (s.results == 1):
		return fmt.Errorf("%d results of a child that has ended: %v", s.results, tree.Ended(c))
	case !s.exists:
		return nil
	case s.child == edgeEnded && !tree.Ended(c):
		return fmt.Errorf("lost: the child has ended, and its parent does not know it")
	case s.child == edgeHalted && c.GetWant() != harnessv1.ChildWant_CHILD_WANT_HALT:
		return fmt.Errorf("stuck: the child is halted, and its order is %v", c.GetWant())
	}
	return nil
}

// Encode appends the canonical form of a state.
func (m *edge) Encode(s *edgeState, into []byte) []byte {
	write := func(p proto.Message) {
		into, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(into, p)
		into = append(into, '|')
	}
	into = fmt.Appendf(into, "%d %s %v %d|%d %v %v %v %d %d %d|%q %v|", s.parent, s.stopping, s.sent, s.results,
		s.child, s.exists, s.first, s.free, s.version, s.reported, s.order, s.used, s.spent)
	write(s.s)
	for _, r := range s.reports {
		write(r)
	}
	into = append(into, '/')
	for _, item := range s.items {
		write(item)
	}
	into = append(into, '/')
	for _, c := range s.late {
		write(c)
	}
	if s.kept != nil {
		write(s.kept)
	}
	return into
}

// Explain puts an action into words.
func (m *edge) Explain(_ *edgeState, a edgeAction, next *edgeState) string {
	return fmt.Sprintf("%-20s the parent %s %s (wants %v by order %d), the child %s at version %d with order %d",
		a.do, edgeWords[next.parent], next.stopping, next.s.GetChildren()[0].GetWant(), next.s.GetChildren()[0].GetOrder(),
		edgeWords[next.child], next.version, next.order)
}
