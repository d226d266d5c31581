package compaction_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestLongGoalIsNoEndOfSummaries has a goal that is longer than a span may be: what follows
// it is summarised all the same.
func TestLongGoalIsNoEndOfSummaries(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	a.add(6_500, &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline("A long document."),
	})
	for range 60 {
		a.turn(90, anchoring) // below clear_tokens
	}
	a.step()
	if len(a.requested) == 0 {
		t.Fatalf("no summary was requested; the plan is %s", a.actions())
	}
	if job := a.requested[0]; job.GetThroughMessage() < 5 {
		t.Errorf("the span ends at m%d", job.GetThroughMessage())
	}
}

// TestShortenedResultsThatGrowAreCounted shortens results twice, first for the window of a
// smaller model. The second time more of a result may be shown: what is shown of the first
// ones grows, and is counted.
func TestShortenedResultsThatGrowAreCounted(t *testing.T) {
	a := newAgent(t, 10_000, func(c *harnessv1.ContextConfig) {
		c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR}
	})
	turn := func(tokens uint32, calls int) {
		a.s.TurnCount++
		m := said()
		for i := range calls {
			m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: fmt.Sprintf("c%d-%d", a.s.GetTurnCount(), i), Name: "read_file", Arguments: content.Inline("{}")})
		}
		a.add(40, m)
		for _, c := range m.GetToolCalls() {
			a.add(tokens, &harnessv1.Message{
				Role: harnessv1.Role_ROLE_TOOL, ToolCallId: c.GetId(), ToolName: "read_file", Durability: anchoring, Kept: true, Content: content.Inline("result"),
			})
		}
	}
	for _, next := range []struct {
		window, tokens uint32
		calls          int
	}{{5_000, 500, 30}, {0, 1250, 5}} {
		a.s.TokenBudget.WindowTokens, a.s.TokenBudget.FactorModel = next.window, a.s.GetModel()
		turn(next.tokens, next.calls)
		a.step()
		var x view.Index
		x.Add(&a.c)
		rules, want := view.NewRules(a.s.GetCompactionPlan(), &x), uint32(700) // the buffer and the tools
		for i := range x.Entries {
			want += rules.Shown(&x.Entries[i])
		}
		if got := a.s.GetTokenBudget().GetUsedTokens(); got != want || got > 8_000 {
			t.Fatalf("after %d results of %d tokens the estimate is %d, and %d are shown: %v", next.calls, next.tokens, got, want, a.s.GetCompactionPlan())
		}
	}
}

func said() *harnessv1.Message {
	return &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Looking.")}
}

// TestOnePassDoesWhatTheNextWouldDo: at blocking pressure the ladder frees less than soft
// pressure needs. Results are cleared directly in the same pass.
func TestOnePassDoesWhatTheNextWouldDo(t *testing.T) {
	a := newAgent(t, 10_000, func(c *harnessv1.ContextConfig) {
		c.Strategies, c.ClearTokens = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR}, proto.Uint32(1_000)
	})
	a.turn(1_100, replayable)
	for range 8 {
		a.turn(900, replayable)
	}
	a.step()
	a.step()
	if done := a.completed(); len(done) != 1 || done[0].GetTokensAfter() >= 8_000 {
		t.Errorf("the passes are %v", done)
	}
}
