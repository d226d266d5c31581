package repair_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// openTurn is a run whose turn 3 is to continue with one approved call. Its compaction was
// broken off, so that the run comes back to repair before the turn has continued.
func openTurn(t *testing.T) *harnessv1.Snapshot {
	t.Helper()
	o := drain(t, waiting(), approve("a", once), approve("b", deny))
	s := o.GetStep().GetSnapshot()
	if verdict(o) != "compaction" || s.GetPhase() != executing || !s.GetTurn().GetOpen() || len(runstate.ApprovedCalls(s)) != 1 {
		t.Fatalf("goes to %s in %s with %v", verdict(o), s.GetPhase(), s.GetPendingToolCalls())
	}
	return s
}

func planMode() *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "plan"}}}
}

// TestOpenTurnWhoseCompactionWasBrokenOff: the rest of the turn is neither lost nor counted
// twice, whatever broke the compaction off.
func TestOpenTurnWhoseCompactionWasBrokenOff(t *testing.T) {
	for _, c := range []struct {
		name  string
		item  *harnessv1.InboxItem
		want  string
		phase harnessv1.Phase
		turns uint32
		left  int // calls that are to run
	}{
		{"nothing", nil, "compaction", executing, 2, 1},
		{"a message", userMessage("wait"), "compaction", executing, 2, 1},
		{"an interrupt", interrupt(), "park interrupted", idle, 2, 0},
		{"a cancel", cancel(), "stopdecision", executing, 2, 0},
		{"a mode that blocks what is left", planMode(), "stopdecision", harnessv1.Phase_PHASE_REFLECTING, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openTurn(t)
			s.Spent.ToolCalls = runstate.DefaultMaxToolCalls // a turn that has begun continues
			var items []*harnessv1.InboxItem
			if c.item != nil {
				items = append(items, c.item)
			}
			o := drain(t, s, items...)
			s = o.GetStep().GetSnapshot()
			if verdict(o) != c.want || s.GetPhase() != c.phase || s.GetTurnCount() != c.turns || len(runstate.ApprovedCalls(s)) != c.left {
				t.Errorf("goes to %s in %s after %d turns with %d calls left", verdict(o), s.GetPhase(), s.GetTurnCount(), len(runstate.ApprovedCalls(s)))
			}
			if turn := o.GetStep().GetTurnComplete(); turn != nil && turn.GetTurnNumber() != 3 {
				t.Errorf("turn %d ended", turn.GetTurnNumber())
			}
		})
	}
}

// TestInterruptedCompactionOfAnOpenTurnEndsIt when the run is resumed: its calls have
// results.
func TestInterruptedCompactionOfAnOpenTurnEndsIt(t *testing.T) {
	parked := drain(t, openTurn(t), interrupt()).GetStep().GetSnapshot()
	parked.ParkVersion = 41
	o := drain(t, parked, resume(nil))
	s := o.GetStep().GetSnapshot()
	want := &harnessv1.TurnComplete{TurnNumber: 3}
	if verdict(o) != "stopdecision" || s.GetPhase() != harnessv1.Phase_PHASE_REFLECTING || s.GetTurnCount() != 3 || s.GetTurn().GetOpen() ||
		!proto.Equal(o.GetStep().GetTurnComplete(), want) {
		t.Errorf("goes to %s in %s after %d turns: %v", verdict(o), s.GetPhase(), s.GetTurnCount(), o.GetStep().GetTurnComplete())
	}
}
