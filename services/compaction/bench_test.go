package compaction_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// longConversation has 10,000 messages and 2 million tokens, all of them weighed.
func longConversation() *conversation.Conversation {
	c := &conversation.Conversation{}
	add := func(tokens uint32, m *harnessv1.Message) {
		m.Id = uint64(len(c.Messages)) + 1
		c.Fold(&harnessv1.Record{Version: m.GetId(), Appended: []*harnessv1.Message{m}})
		c.Weights = append(c.Weights, tokens)
	}
	add(500, &harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Kept: true, Content: content.Inline("You are an agent.")})
	add(100, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline("Go.")})
	for turn := uint32(1); len(c.Messages) < 10_000; turn++ {
		id := fmt.Sprintf("c%d", turn)
		add(60, &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: turn, Content: content.Inline("I look."), ToolCalls: []*harnessv1.ToolCall{
			{Id: id, Name: "read_file", Arguments: content.Inline(`{"path":"pkg/some/file.go"}`)},
		}})
		add(340, &harnessv1.Message{
			Role: harnessv1.Role_ROLE_TOOL, TurnNumber: turn, ToolCallId: id, ToolName: "read_file", Content: content.Inline("a file"),
			Durability: harnessv1.Durability(1 + turn%4), Preserved: []*harnessv1.PreservedField{{Name: "path", Value: "pkg/some/file.go"}},
		})
	}
	return c
}

func fullStep(c *conversation.Conversation) *harnessv1.StepInput {
	return &harnessv1.StepInput{Now: timestamppb.New(time.Unix(1, 0)), Step: &harnessv1.Step{
		Snapshot: &harnessv1.Snapshot{
			Phase: harnessv1.Phase_PHASE_EXECUTING, MessageCount: uint64(len(c.Messages)), TurnCount: 5000, Workflow: workflow.Default(),
			TokenBudget: &harnessv1.TokenBudget{ReportedTokens: 850_000, ReportedMessages: uint64(len(c.Messages)) - 2},
			Config: runstate.Resolve(&harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{
				MaxInputTokens: proto.Uint32(1_000_000), Strategies: []harnessv1.CompactionAction{1, 2, 4},
			}}, 0),
		},
		Message: &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}},
	}}
}

// BenchmarkLongRun plans and renders a conversation of 10,000 messages and 2 million tokens:
// index and plan made for the first time, the plan from the index, and what a turn without a
// pass needs after that.
func BenchmarkLongRun(b *testing.B) {
	c := longConversation()
	in := fullStep(c)
	decide := func(x *view.Index) *harnessv1.CompactionPlan {
		out, err := compaction.Decide(in, x)
		if err != nil || len(out.GetOutcome().GetStep().GetSnapshot().GetCompactionPlan().GetWatermarks()) == 0 {
			b.Fatalf("%v, %v", out, err)
		}
		return out.GetOutcome().GetStep().GetSnapshot().GetCompactionPlan()
	}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			var x view.Index
			x.Add(c)
		}
	})
	b.Run("plan", func(b *testing.B) {
		var x view.Index
		x.Add(c)
		for b.Loop() {
			decide(&x)
		}
	})
	b.Run("view", func(b *testing.B) {
		var x view.Index
		x.Add(c)
		plan := decide(&x)
		for b.Loop() {
			var v view.View
			v.Update(c, plan, nil)
		}
	})
	b.Run("next turn", func(b *testing.B) {
		var v view.View
		v.Index.Add(c)
		plan := decide(&v.Index)
		v.Update(c, plan, nil)
		next := &harnessv1.Step{Message: in.GetStep().GetMessage()}
		s := runstate.Clone(in.GetStep().GetSnapshot())
		s.CompactionPlan, s.TokenBudget.FreedTokens = plan, 400_000
		next.Snapshot = s
		for b.Loop() {
			out, err := compaction.Decide(&harnessv1.StepInput{Now: in.GetNow(), Step: next}, &v.Index)
			if err != nil || out.GetOutcome() == nil {
				b.Fatal(out, err)
			}
			v.Update(c, plan, nil)
		}
	})
}
