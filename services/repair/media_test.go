package repair_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
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

// TestReplacedAnswerHasNoMedia: what a subscriber hides must not remain in an image.
func TestReplacedAnswerHasNoMedia(t *testing.T) {
	s := hooked(1, harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL)
	hook := s.GetDefinition().GetHooks()[0]
	hook.Cel, hook.Action, hook.Context, hook.Command = "", 0, "", "redact"
	item := answers(1, false)[0]
	item.Id, item.Sequence = "i", s.GetInboxCursor()+1
	item.GetToolAnswer().Media = []*harnessv1.Media{picture()}
	in := &harnessv1.StepInput{
		Now: timestamppb.New(noon), Sequence: 99,
		Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE}}},
		Observed: []*harnessv1.Observation{{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{
			Inbox: &harnessv1.InboxBatch{Items: []*harnessv1.InboxItem{item}, Cursor: item.GetSequence()},
		}}},
	}
	out, err := repair.Decide(in)
	if err != nil || len(out.GetNeeds().GetKeys()) != 1 {
		t.Fatalf("decided %v (%v), want the verdict of the hook first", out, err)
	}
	in.Observed = append(in.Observed, &harnessv1.Observation{Key: out.GetNeeds().GetKeys()[0], Value: &harnessv1.Observation_Hook{Hook: &harnessv1.HookOutcome{
		Verdict: &harnessv1.HookVerdict{Action: harnessv1.HookAction_HOOK_ACTION_REPLACE, Payload: `{"result":"hidden"}`},
	}}})
	o := decide(t, in)
	for _, m := range o.GetAppended() {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL && (m.GetContent().GetInline() != "hidden" || len(m.GetParts()) > 0) {
			t.Errorf("the result is %v, want the text of the subscriber alone", m)
		}
	}
	if len(o.GetAppended()) == 0 {
		t.Error("the answer is not in the conversation")
	}
}
