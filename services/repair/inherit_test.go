package repair_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// modeItem is a change of the mode of work: an order of the parent if its number is not 0.
func modeItem(to string, order uint32, plans bool) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Order: order, Plans: plans, Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: to}}}
}

// TestPlanModeOfTheParent: a child is in plan mode while its parent is, whatever its own mode, and tells its own
// children. What it waits for it still waits for.
func TestPlanModeOfTheParent(t *testing.T) {
	s := waiting()
	s.Parent = &harnessv1.Parent{RunId: "p", Order: 1, Halted: true}
	s.Children = []*harnessv1.Child{{RunId: "c", Want: harnessv1.ChildWant_CHILD_WANT_HALT, Order: 2, Sent: 2}}
	o := drain(t, s, modeItem("plan", 2, true), modeItem("execute", 0, false))
	s = o.GetStep().GetSnapshot()
	if runstate.Mode(s) != "plan" || events(o) != "mode.changed guidance.injected input.accepted input.rejected" || verdict(o) != "park approval" || !s.GetParent().GetHalted() {
		t.Errorf("mode %s, %s: %s", runstate.Mode(s), verdict(o), events(o))
	}
	if c := s.GetChildren()[0]; c.GetOrder() != 3 || !c.GetPlans() || c.GetWant() != harnessv1.ChildWant_CHILD_WANT_HALT {
		t.Errorf("its child has %v", c)
	}
	o = drain(t, s, modeItem("", 3, false))
	s = o.GetStep().GetSnapshot()
	if runstate.Mode(s) != "execute" || s.GetParent().GetOrder() != 3 || s.GetChildren()[0].GetPlans() {
		t.Errorf("afterwards it is in mode %s: %v", runstate.Mode(s), s.GetChildren())
	}
	if o := drain(t, s, modeItem("plan", 2, true)); runstate.Mode(o.GetStep().GetSnapshot()) != "execute" || events(o) != "input.rejected" {
		t.Errorf("an older order changed the mode: %s", events(o))
	}
}
