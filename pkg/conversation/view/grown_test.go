package view_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// said is a message of the model with calls of read_file.
func said(text string, calls ...string) *harnessv1.Message {
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(text)}
	for _, id := range calls {
		m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: id, Name: "read_file", Arguments: content.Inline(`{"path":"a.go"}`)})
	}
	return m
}

func resultOf(id string) *harnessv1.Message {
	return &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, ToolName: "read_file", Content: content.Inline("result of " + id)}
}

// goal are the first messages of a run.
func goal() []*harnessv1.Message {
	return []*harnessv1.Message{
		{Role: harnessv1.Role_ROLE_SYSTEM, Kept: true, Content: content.Inline("You are an agent.")},
		{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline("Find the port.")},
	}
}

// lies returns the calls whose results are shown as missing although they are there.
func lies(s *story, items []view.Item) error {
	answered := map[string]bool{}
	for _, m := range s.Messages {
		answered[m.GetToolCallId()] = true
	}
	for _, it := range items {
		if m := it.Message; m.GetRole() == harnessv1.Role_ROLE_TOOL && it.First == 0 && answered[m.GetToolCallId()] {
			return fmt.Errorf("the result of %s is shown as missing", m.GetToolCallId())
		}
	}
	return nil
}

// TestResultsOfAKeptReportStay summarises a completion report, which is kept: the results of
// the calls next to it are shown with it.
func TestResultsOfAKeptReportStay(t *testing.T) {
	s := &story{}
	s.add(goal()...)
	report := said("It is 8080.", "c1", "c2")
	report.Kept, report.KeptContent = true, harnessv1.KeptContent_KEPT_CONTENT_COMPLETION
	s.add(report, resultOf("c1"), resultOf("c2"), said("more", "c3"), resultOf("c3"), said("last"))
	plan := &harnessv1.CompactionPlan{Renderer: view.Renderer, Summary: &harnessv1.SummaryRef{ThroughMessage: 7}}
	var v view.View
	items := v.Update(&s.Conversation, plan, summaryOf(plan))
	if err := lies(s, items); err != nil {
		t.Errorf("%v\n%s", err, show(items))
	}
}

// TestResultsMayFollowLaterCalls renders a conversation of another program, in which a result
// follows a later call that has none.
func TestResultsMayFollowLaterCalls(t *testing.T) {
	s := &story{}
	s.add(goal()...)
	s.add(said("first", "c1"), said("second", "c2"), resultOf("c1"))
	var v view.View
	items := v.Update(&s.Conversation, nil, nil)
	if err := lies(s, items); err != nil {
		t.Errorf("%v\n%s", err, show(items))
	}
}

// TestViewGrowsByMessages makes the view after each message of a conversation in any order:
// it is the one that is made of the whole conversation, and no result is shown as missing
// that is there.
func TestViewGrowsByMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &story{}
		s.add(goal()...)
		var open []string
		var grown view.View
		var plan *harnessv1.CompactionPlan
		for n := range rapid.IntRange(1, 20).Draw(t, "messages") {
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind <= 1:
				var calls []string
				for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
					calls = append(calls, fmt.Sprintf("c%d-%d", n, i))
				}
				m := said("said", calls...)
				m.Kept = rapid.IntRange(0, 3).Draw(t, "kept") == 0
				s.add(m)
				open = append(open, calls...)
			case kind <= 4 && len(open) > 0:
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				m := resultOf(open[i])
				m.Kept = rapid.IntRange(0, 3).Draw(t, "kept") == 0
				s.add(m)
				open = slices.Delete(open, i, i+1)
			default:
				s.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Topic: "t", Content: content.Inline("guided")})
			}
			if rapid.IntRange(0, 4).Draw(t, "pass") == 0 {
				plan = plans(len(s.Messages)).Draw(t, "plan")
				for _, w := range plan.GetWatermarks() {
					w.ThroughMessage = min(w.GetThroughMessage(), uint64(len(s.Messages)))
				}
				if plan.GetSummary() != nil {
					plan.Summary.ThroughMessage = min(plan.Summary.GetThroughMessage(), uint64(len(s.Messages)))
				}
			}
			items := slices.Clone(grown.Update(&s.Conversation, plan, summaryOf(plan)))
			var fresh view.View
			if whole := fresh.Update(&s.Conversation, plan, summaryOf(plan)); show(items) != show(whole) {
				t.Fatalf("grown:\n%s\nmade again:\n%s\n%v", show(items), show(whole), plan)
			}
			if err := lies(s, items); err != nil {
				t.Fatalf("%v\n%s\n%v", err, show(items), plan)
			}
			if plan == nil && !slices.EqualFunc(view.Messages(items), conversation.View(s.Messages), func(a, b *harnessv1.Message) bool { return proto.Equal(a, b) }) {
				t.Fatalf("a view without a plan differs from conversation.View:\n%s", show(items))
			}
		}
	})
}
