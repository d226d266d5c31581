package repair_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// picture is an image as the gateway stores it.
func picture() *harnessv1.Media {
	return &harnessv1.Media{Type: media.PNG, Width: 300, Height: 250, Name: "chart.png", Blob: &harnessv1.BlobRef{Digest: "d", Size: 9000}}
}

// pictured returns the messages that have the image alone.
func pictured(o *harnessv1.Outcome) (found []*harnessv1.Message) {
	for _, m := range o.GetAppended() {
		if len(m.GetParts()) == 1 && proto.Equal(m.GetParts()[0].GetMedia(), picture()) {
			found = append(found, m)
		}
	}
	return found
}

func TestGoalKeepsItsMedia(t *testing.T) {
	s := spec()
	s.Media = []*harnessv1.Media{picture()}
	o := decide(t, first(begun(), s, nothing()...))
	found := pictured(o)
	if len(found) != 1 || found[0].GetRole() != harnessv1.Role_ROLE_USER || found[0].GetContent().GetInline() != s.GetGoal().GetInline() {
		t.Errorf("messages with the image: %v, want the goal", found)
	}
	with := o.GetStep().GetSnapshot().GetTokenBudget().GetUnreportedBytes()
	s.Media = nil
	without := decide(t, first(begun(), s, nothing()...)).GetStep().GetSnapshot().GetTokenBudget().GetUnreportedBytes()
	if with != without+400 {
		t.Errorf("the image weighs %d bytes, want that of 100 tokens", with-without)
	}
}

func TestMessageKeepsItsMedia(t *testing.T) {
	for name, c := range map[string]struct {
		state *harnessv1.Snapshot
		text  *harnessv1.Content
		goal  string
	}{
		"with text":                 {running(), content.Inline("What is this?"), "the goal"},
		"alone":                     {running(), nil, "the goal"},
		"reopens with text":         {finished(), content.Inline("What is this?"), "What is this?"},
		"reopens with a blank text": {finished(), content.Inline(" "), "Look at the attached files: chart.png"},
	} {
		t.Run(name, func(t *testing.T) {
			o := drain(t, c.state, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{
				UserMessage: &harnessv1.UserMessage{Content: c.text, Media: []*harnessv1.Media{picture()}},
			}})
			found := pictured(o)
			if len(found) != 1 || found[0].GetRole() != harnessv1.Role_ROLE_USER || !proto.Equal(found[0].GetContent(), c.text) {
				t.Errorf("messages with the image: %v, want one with the text %v", found, c.text)
			}
			if s := o.GetStep().GetSnapshot(); s.GetGoalPreview() != c.goal || runstate.Ended(s) {
				t.Errorf("the goal is %q, ended: %v; want %q", s.GetGoalPreview(), runstate.Ended(s), c.goal)
			}
		})
	}
}

func TestAnswerKeepsItsMedia(t *testing.T) {
	item := func(call string) *harnessv1.InboxItem {
		answer := result(call, "done")
		answer.GetToolAnswer().Media = []*harnessv1.Media{picture()}
		return answer
	}
	found := pictured(drain(t, asking(), item("c")))
	if len(found) != 1 || found[0].GetRole() != harnessv1.Role_ROLE_TOOL || found[0].GetToolCallId() != "c" {
		t.Errorf("messages with the image: %v, want the result of the call", found)
	}
	question := asking()
	question.PendingToolCalls[1].Tool, question.PendingToolCalls[1].Origin = runstate.ContractQuestion, harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS
	question.PendingToolCalls[1].CallId = runstate.ContractCallID("which", 1)
	found = pictured(drain(t, question, item(question.PendingToolCalls[1].GetCallId())))
	if len(found) != 1 || found[0].GetKind() != harnessv1.MessageKind_MESSAGE_KIND_ANSWER {
		t.Errorf("messages with the image: %v, want the answer to the question of the contract", found)
	}
}
