package view_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// TestUnchangedIsWhatTheViewShows compares with the items of the view.
func TestUnchangedIsWhatTheViewShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t, rapid.IntRange(1, 6).Draw(t, "turns"))
		for i, m := range s.Messages {
			if m.GetRole() == harnessv1.Role_ROLE_TOOL && i%2 == 0 {
				m.Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Blob: &harnessv1.BlobRef{Size: 9}}}}}
			}
		}
		plan := plans(len(s.Messages)).Draw(t, "plan")
		var v view.View
		shown := map[uint64]bool{}
		for _, it := range v.Update(&s.Conversation, plan, summaryOf(plan)) {
			if it.First > 0 && it.First == it.Last && it.Message == s.Messages[it.First-1] && it.Limit == 0 {
				shown[it.First] = true
			}
		}
		rules := view.NewRules(plan, &v.Index)
		for _, m := range s.Messages {
			if blankResult := content.Text(m.GetContent()) == ""; m.GetRole() != harnessv1.Role_ROLE_TOOL || blankResult {
				continue
			}
			if got := rules.Unchanged(m.GetId()); got != shown[m.GetId()] {
				t.Fatalf("message %d is unchanged: %t\n%v\n%s", m.GetId(), got, plan, show(v.Update(&s.Conversation, plan, summaryOf(plan))))
			}
		}
		if rules.Unchanged(0) || rules.Unchanged(uint64(len(s.Messages))+1) {
			t.Fatal("a message that does not exist is shown")
		}
	})
}

// TestClearedMediaIsNotUnchanged: a result without its image is not shown in full.
func TestClearedMediaIsNotUnchanged(t *testing.T) {
	s := &story{}
	s.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{{Id: "a", Name: "read_file"}}},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "a", Content: content.Inline("a chart"), Parts: []*harnessv1.Part{
			{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Blob: &harnessv1.BlobRef{Size: 9}}}},
		}})
	var x view.Index
	x.Add(&s.Conversation)
	for through, want := range map[uint64]bool{1: true, 2: false} {
		plan := &harnessv1.CompactionPlan{Watermarks: []*harnessv1.Watermark{{
			Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_MEDIA, ThroughMessage: through,
		}}}
		if got := view.NewRules(plan, &x).Unchanged(2); got != want {
			t.Errorf("cleared through %d: %t", through, got)
		}
	}
}

// TestNewestOutcomeDecides: where the newest of equal outcomes is not shown in full, none is.
func TestNewestOutcomeDecides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &story{}
		s.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline("Go on.")})
		kinds := []struct {
			durability harnessv1.Durability
			plan       bool
			text       *harnessv1.Content
		}{
			{harnessv1.Durability_DURABILITY_EPHEMERAL, false, content.Inline("short")},
			{harnessv1.Durability_DURABILITY_REPLAYABLE, false, text(t, "long")},
			{harnessv1.Durability_DURABILITY_REPLAYABLE, true, content.Inline("the plan")},
			{harnessv1.Durability_DURABILITY_REPLAYABLE, true, content.Inline("another plan")},
			{harnessv1.Durability_DURABILITY_NON_REPLAYABLE, false, text(t, "found")},
		}
		occurred := map[uint64][]uint64{}
		turn := uint32(1)
		for n := range rapid.IntRange(1, 14).Draw(t, "calls") {
			k := rapid.SampledFrom(kinds).Draw(t, "kind")
			id, tool := fmt.Sprint("c", n), fmt.Sprint("tool", k.durability)
			result := &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, ToolName: tool, TurnNumber: turn, Durability: k.durability, Content: k.text}
			if k.plan {
				result.Kept, result.KeptContent = true, harnessv1.KeptContent_KEPT_CONTENT_PLAN_FILE
				result.Preserved = []*harnessv1.PreservedField{{Name: "path", Value: "PLAN.md"}}
			}
			s.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: turn, ToolCalls: []*harnessv1.ToolCall{{Id: id, Name: tool, Arguments: content.Inline("{}")}}}, result)
			strict, _ := progress.Signature(tool, "{}", content.DigestOf(k.text))
			occurred[strict] = append(occurred[strict], result.GetId())
			turn += rapid.Uint32Range(0, 1).Draw(t, "next turn")
		}
		plan := plans(len(s.Messages)).Draw(t, "plan")
		var x view.Index
		x.Add(&s.Conversation)
		rules := view.NewRules(plan, &x)
		limit := uint64(len(s.Messages)) + 1
		for strict, ids := range occurred {
			var want bool
			for _, id := range ids {
				want = want || rules.Unchanged(id)
			}
			if newest := s.NewestOutcome(strict, 0, limit); newest != ids[len(ids)-1] || rules.Unchanged(newest) != want {
				t.Fatalf("outcome of %v: the newest is %d, shown in full: %t, want %t\n%v", ids, newest, rules.Unchanged(newest), want, plan)
			}
		}
	})
}
