package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// story is a conversation that grows by whole turns.
type story struct {
	conversation.Conversation
	version uint64
}

func (s *story) add(messages ...*harnessv1.Message) {
	for _, m := range messages {
		m.Id = uint64(len(s.Messages)) + 1
		s.version++
		s.Fold(&harnessv1.Record{Version: s.version, Appended: []*harnessv1.Message{m}})
	}
}

// turn adds a response with calls, and their results in an order of rapid's choice.
func (s *story) turn(t *rapid.T, number uint32) {
	calls := rapid.IntRange(0, 3).Draw(t, "calls")
	response := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: number, Content: text(t, "said")}
	var results []*harnessv1.Message
	for i := range calls {
		id := fmt.Sprintf("c%d-%d", number, i)
		response.ToolCalls = append(response.ToolCalls, &harnessv1.ToolCall{Id: id, Name: "read_file", Arguments: arguments(t)})
		result := &harnessv1.Message{
			Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, ToolName: "read_file", TurnNumber: number, Content: text(t, "result"),
			Durability: rapid.SampledFrom([]harnessv1.Durability{0, 1, 2, 3, 4}).Draw(t, "durability"),
		}
		if rapid.IntRange(0, 9).Draw(t, "plan file") == 0 {
			result.Kept, result.KeptContent = true, harnessv1.KeptContent_KEPT_CONTENT_PLAN_FILE
			result.Preserved = []*harnessv1.PreservedField{{Name: "path", Value: "PLAN.md"}}
		}
		results = append(results, result)
	}
	if calls > 0 && rapid.IntRange(0, 5).Draw(t, "completion") == 0 {
		mark.Completion(response)
		mark.Completion(results[0])
	}
	s.add(response)
	if rapid.IntRange(0, 5).Draw(t, "steered") == 0 {
		s.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: text(t, "steering"), TurnNumber: number})
	}
	s.add(rapid.Permutation(results).Draw(t, "order")...)
	if rapid.IntRange(0, 3).Draw(t, "guided") == 0 {
		s.add(&harnessv1.Message{
			Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Topic: "items_state", Content: text(t, "guidance"), TurnNumber: number,
		})
	}
}

func text(t *rapid.T, label string) *harnessv1.Content {
	text := label + " " + strings.Repeat("word ", rapid.SampledFrom([]int{0, 1, 30, 200, 2000}).Draw(t, label))
	if len(text) > 8000 {
		return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte(text))}}
	}
	return content.Inline(text)
}

func arguments(t *rapid.T) *harnessv1.Content {
	text := rapid.SampledFrom([]string{`{}`, `{"path":"a.go"}`, "not JSON", `{"path":"a.go","content":"` + strings.Repeat(`x\n`, 900) + `","n":1}`, `[` + strings.Repeat("1,", 300) + `1]`}).Draw(t, "arguments")
	return content.Inline(text)
}

// newStory returns a story with a system prompt, a goal and a number of turns.
func newStory(t *rapid.T, turns int) *story {
	s := &story{}
	s.add(
		&harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Kept: true, Content: content.Inline("You are an agent.")},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: text(t, "goal")},
	)
	for n := range turns {
		s.turn(t, uint32(n)+1)
	}
	return s
}

// plans are any plans, valid or not.
func plans(through int) *rapid.Generator[*harnessv1.CompactionPlan] {
	return rapid.Custom(func(t *rapid.T) *harnessv1.CompactionPlan {
		p := &harnessv1.CompactionPlan{Renderer: view.Renderer}
		for range rapid.IntRange(0, 6).Draw(t, "watermarks") {
			p.Watermarks = append(p.Watermarks, &harnessv1.Watermark{
				Action: harnessv1.CompactionAction(rapid.Int32Range(0, 7).Draw(t, "action")),
				Class:  harnessv1.MessageClass(rapid.Int32Range(0, 13).Draw(t, "class")), ThroughMessage: rapid.Uint64Range(0, uint64(through)+3).Draw(t, "through"),
				MinTokens: rapid.SampledFrom([]uint32{0, 100, 1000}).Draw(t, "least"), ShownTokens: 100,
			})
		}
		if rapid.Bool().Draw(t, "summarised") {
			p.Summary = &harnessv1.SummaryRef{ThroughMessage: rapid.Uint64Range(0, uint64(through)+1).Draw(t, "span")}
		}
		return p
	})
}

func summaryOf(p *harnessv1.CompactionPlan) *harnessv1.StructuredSummary {
	if p.GetSummary() == nil {
		return nil
	}
	return &harnessv1.StructuredSummary{
		Facts: []*harnessv1.SummaryStatement{{Text: "the port is 8080", Messages: []uint64{3}}}, FirstMessage: 3, ThroughMessage: p.GetSummary().GetThroughMessage(),
	}
}

// check returns the fault of a view, empty for none.
func check(s *story, items []view.Item) error {
	open := map[string]bool{}
	users := 0
	for i, it := range items {
		m := it.Message
		switch {
		case m.GetRole() == harnessv1.Role_ROLE_TOOL && !open[m.GetToolCallId()]:
			return fmt.Errorf("item %d is a result of %q, which is not called before it", i, m.GetToolCallId())
		case m.GetRole() != harnessv1.Role_ROLE_TOOL && len(open) > 0:
			return fmt.Errorf("item %d follows calls without a result", i)
		case m.GetContent().GetBlob() == nil && strings.TrimSpace(m.GetContent().GetInline()) == "" && len(m.GetToolCalls()) == 0:
			return fmt.Errorf("item %d is blank", i)
		}
		delete(open, m.GetToolCallId())
		for _, c := range m.GetToolCalls() {
			open[c.GetId()] = true
			if raw := c.GetArguments().GetInline(); it.Action == harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE && raw != "not JSON" && !json.Valid([]byte(raw)) {
				return fmt.Errorf("item %d has arguments that are not valid JSON: %s", i, raw)
			}
		}
		if m.GetRole() == harnessv1.Role_ROLE_USER {
			users++
		}
		if it.First != 0 && (it.First > it.Last || it.Last > uint64(len(s.Messages))+1) {
			return fmt.Errorf("item %d shows messages %d to %d", i, it.First, it.Last)
		}
	}
	if len(open) > 0 || users == 0 {
		return fmt.Errorf("%d calls without a result, %d messages of the user", len(open), users)
	}
	return nil
}

// TestEveryPlanGivesAConversation applies any plan to any conversation. The user's words and
// the system prompt are always shown.
func TestEveryPlanGivesAConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t, rapid.IntRange(0, 6).Draw(t, "turns"))
		stored := clones(s.Messages)
		plan := plans(len(s.Messages)).Draw(t, "plan")
		var v view.View
		items := v.Update(&s.Conversation, plan, summaryOf(plan))
		if err := check(s, items); err != nil {
			t.Fatalf("%v\n%v\n%s", err, plan, show(items))
		}
		shown := map[uint64]bool{}
		for _, it := range items {
			shown[it.First] = shown[it.First] || it.First == it.Last
		}
		for _, m := range s.Messages {
			own := m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT || m.GetRole() == harnessv1.Role_ROLE_SYSTEM
			if own && !shown[m.GetId()] {
				t.Fatalf("message %d of the user is not shown\n%v\n%s", m.GetId(), plan, show(items))
			}
		}
		if !slices.EqualFunc(stored, s.Messages, func(a, b *harnessv1.Message) bool { return proto.Equal(a, b) }) {
			t.Fatal("stored messages were changed")
		}
	})
}

// TestViewGrows makes the view after each turn. It is the one that is made of the whole
// conversation, and it begins with the one before: a message changes nothing before it.
func TestViewGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t, 3)
		plan := plans(len(s.Messages)).Draw(t, "plan")
		for _, w := range plan.GetWatermarks() { // no program plans beyond the conversation
			w.ThroughMessage = min(w.GetThroughMessage(), uint64(len(s.Messages)))
		}
		if plan.GetSummary() != nil {
			plan.Summary.ThroughMessage = min(plan.Summary.GetThroughMessage(), uint64(len(s.Messages)))
		}
		var grown view.View
		var before []view.Item
		for n := range 4 {
			items := slices.Clone(grown.Update(&s.Conversation, plan, summaryOf(plan)))
			var fresh view.View
			if whole := fresh.Update(&s.Conversation, plan, summaryOf(plan)); show(items) != show(whole) {
				t.Fatalf("grown:\n%s\nmade again:\n%s\n%v", show(items), show(whole), plan)
			}
			if len(items) < len(before) || show(items[:len(before)]) != show(before) {
				t.Fatalf("before:\n%s\nafter:\n%s\n%v", show(before), show(items), plan)
			}
			before = items
			s.turn(t, uint32(n)+4)
		}
	})
}

// TestViewWithoutPlan is conversation.View.
func TestViewWithoutPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t, 4)
		var v view.View
		got := view.Messages(v.Update(&s.Conversation, nil, nil))
		if !slices.EqualFunc(got, conversation.View(s.Messages), func(a, b *harnessv1.Message) bool { return proto.Equal(a, b) }) {
			t.Fatal("a view without a plan differs from conversation.View")
		}
	})
}

func clones(messages []*harnessv1.Message) []*harnessv1.Message {
	c := make([]*harnessv1.Message, len(messages))
	for i, m := range messages {
		c[i] = proto.CloneOf(m)
	}
	return c
}

func show(items []view.Item) string {
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintf(&b, "%d-%d %s %s", it.First, it.Last, strings.TrimPrefix(it.Action.String(), "COMPACTION_ACTION_"), it.Message.GetRole())
		for _, c := range it.Message.GetToolCalls() {
			fmt.Fprintf(&b, " %s(%s)", c.GetId(), c.GetArguments().GetInline())
		}
		fmt.Fprintf(&b, " %s: %s\n", it.Message.GetToolCallId(), content.Line(content.Text(it.Message.GetContent()), 160))
	}
	return b.String()
}
