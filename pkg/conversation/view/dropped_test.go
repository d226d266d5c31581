package view_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// closed returns the messages after which no call is without its result.
func (s *story) closed() (all []uint64) {
	open := map[string]bool{}
	for _, m := range s.Messages {
		for _, c := range m.GetToolCalls() {
			open[c.GetId()] = true
		}
		if delete(open, m.GetToolCallId()); len(open) == 0 {
			all = append(all, m.GetId())
		}
	}
	return all
}

// TestWhatIsLeftOutIsNamed by one item that has a reference for read_artifact and stands for
// the message, or by the message itself.
func TestWhatIsLeftOutIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t, rapid.IntRange(1, 6).Draw(t, "turns"))
		plan := plans(len(s.Messages)).Draw(t, "plan")
		if rapid.Bool().Draw(t, "drops") {
			for _, action := range []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, harnessv1.CompactionAction_COMPACTION_ACTION_DROP} {
				plan.Watermarks = append(plan.Watermarks, &harnessv1.Watermark{
					Action: action, Class: harnessv1.MessageClass_MESSAGE_CLASS_RESULT, ThroughMessage: rapid.Uint64Range(1, uint64(len(s.Messages))).Draw(t, "through"),
				})
			}
		}
		if plan.GetSummary() != nil {
			plan.Summary.ThroughMessage = rapid.SampledFrom(s.closed()).Draw(t, "closed")
		}
		var v view.View
		items := v.Update(&s.Conversation, plan, summaryOf(plan))
		for _, m := range s.Messages {
			whole, named := false, false
			calls := 0
			for _, it := range items {
				if it.Message.GetId() == m.GetId() {
					calls = len(it.Message.GetToolCalls())
					whole = content.Text(it.Message.GetContent()) == content.Text(m.GetContent()) && calls == len(m.GetToolCalls())
				}
				if it.First <= m.GetId() && m.GetId() <= it.Last {
					text := content.Text(it.Message.GetContent())
					for _, c := range it.Message.GetToolCalls() {
						text += content.Text(c.GetArguments())
					}
					named = named || strings.Contains(text, "ref m")
				}
			}
			blank := m.GetRole() == harnessv1.Role_ROLE_ASSISTANT && strings.TrimSpace(content.Text(m.GetContent())) == ""
			if !whole && !named && !blank {
				t.Fatalf("message %d is neither shown nor named, with %d of %d calls\n%v\n%s", m.GetId(), calls, len(m.GetToolCalls()), plan, show(items))
			}
		}
	})
}
