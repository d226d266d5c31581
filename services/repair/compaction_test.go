package repair_test

import (
	"sort"
	"strings"
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

// TestRunWhoseToolsFillTheWindow fails at its start, with the sizes: no compaction can free
// what every request has.
func TestRunWhoseToolsFillTheWindow(t *testing.T) {
	large := &harnessv1.ToolSpec{Name: "large", Description: strings.Repeat("word ", 9000), Annotations: &harnessv1.ToolAnnotations{Writes: true}}
	for _, c := range []struct {
		name   string
		mode   string
		window uint32
		hosted bool // the tool is the host's, else a client's
		want   string
	}{
		{"a client's tool", "execute", 8000, false, "stopdecision"},
		{"a host's tool", "execute", 8000, true, "stopdecision"},
		{"a larger window", "execute", 16000, true, "turn"},
		{"a mode without the tool", "plan", 8000, true, "turn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start, observed := spec(), nothing()
			start.Agent.Mode, start.Config.Context = c.mode, &harnessv1.ContextConfig{MaxInputTokens: &c.window}
			if c.hosted {
				observed[1].GetEnvironment().Tools = []*harnessv1.ToolSpec{large}
			} else {
				start.ClientTools = []*harnessv1.ToolSpec{large}
			}
			o := decide(t, first(begun(), start, observed...))
			failure := o.GetStep().GetTurnComplete().GetError()
			if verdict(o) != c.want || (failure != nil) != (c.want == "stopdecision") {
				t.Fatalf("goes to %s with %v", verdict(o), failure)
			}
			if message := failure.GetMessage(); failure != nil && (failure.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED ||
				!strings.Contains(message, "the window has only 8000") || !strings.Contains(message, "500 are kept free")) {
				t.Errorf("the run fails with %v", failure)
			}
		})
	}
}

// TestReadArtifactIsOverhead: a run needs room for the tool that reads back, with and without compaction.
func TestReadArtifactIsOverhead(t *testing.T) {
	least := func(compaction bool) int {
		return sort.Search(8000, func(n int) bool {
			start := spec()
			start.Config.Context = &harnessv1.ContextConfig{
				MaxInputTokens: proto.Uint32(uint32(n) + 1000), Compaction: &compaction,
			}
			return decide(t, first(begun(), start, nothing()...)).GetStep().GetTurnComplete().GetError() == nil
		})
	}
	if with, without := least(true), least(false); with < without || without+50 < with {
		t.Errorf("a run needs %d tokens with compaction, and %d without", with, without)
	}
}

// TestFirstTokenFactor: a run starts with the factor of its model, which its state keeps.
func TestFirstTokenFactor(t *testing.T) {
	on, off := proto.Bool(true), proto.Bool(false)
	for _, c := range []struct {
		model      string
		compaction *bool
		want       float64
	}{
		{"anthropic:claude-opus-5-5", on, 1.6},
		{"nobody:knows", nil, 1.25},
		{"openai:gpt-5", on, 0},
		{"script:turns.yaml", on, 0},
		{"anthropic:claude-opus-5-5", off, 0},
	} {
		start := spec()
		start.Agent.Model, start.Config.Context = c.model, &harnessv1.ContextConfig{Compaction: c.compaction}
		b := decide(t, first(begun(), start, nothing()...)).GetStep().GetSnapshot().GetTokenBudget()
		of := ""
		if c.want > 0 {
			of = c.model
		}
		if b.GetFactor() != c.want || b.GetFactorModel() != of {
			t.Errorf("%s, compaction %v: the factor is %g of %q, want %g", c.model, c.compaction, b.GetFactor(), b.GetFactorModel(), c.want)
		}
	}
}
