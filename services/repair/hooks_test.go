package repair_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// hooked is a run that waits for the answers of n calls of a client's tool, with
// hooks that always speak.
func hooked(n int, topics ...harnessv1.HookTopic) *harnessv1.Snapshot {
	s := waiting()
	s.PendingToolCalls, s.Definition = nil, &harnessv1.Definition{}
	for i := range n {
		s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{
			CallId: fmt.Sprint("c", i), Tool: "upload", Kind: "client_tool", TurnNumber: 3, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT,
			Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Arguments: content.Inline("{}"),
		})
	}
	for i, topic := range topics {
		s.Definition.Hooks = append(s.Definition.Hooks, &harnessv1.Hook{
			Id: fmt.Sprint("h", i), Topic: topic, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Context: fmt.Sprint("note ", i),
		})
	}
	return s
}

func answers(n int, failed bool) []*harnessv1.InboxItem {
	var items []*harnessv1.InboxItem
	for i := range n {
		items = append(items, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{
			CallId: fmt.Sprint("c", i), Result: content.Inline("r"), IsError: failed,
		}}})
	}
	return items
}

// TestFailedAnswerFiresBothTopics: their events follow the result, and their notes
// all other messages.
func TestFailedAnswerFiresBothTopics(t *testing.T) {
	s := hooked(1, harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR)
	o := drain(t, s, append(answers(1, true), userMessage("hello"))...)
	if got, want := events(o), "tool.error hook.result hook.result input.accepted input.accepted guidance.injected guidance.injected"; got != want {
		t.Errorf("the events are %s, want %s", got, want)
	}
	if first := o.GetEvents()[1].GetHookResult().GetHookId(); first != "h1" {
		t.Errorf("%s is first, want the hook of on_error", first)
	}
	var texts []string
	for _, m := range o.GetAppended() {
		texts = append(texts, content.Text(m.GetContent()))
	}
	if got, want := strings.Join(texts, ", "), "r, hello, [harness] note 1, [harness] note 0"; got != want {
		t.Errorf("the messages are %s, want %s", got, want)
	}
}

// TestDecisionBoundsTheEventsOfHooks: what is left stays in the inbox.
func TestDecisionBoundsTheEventsOfHooks(t *testing.T) {
	after := harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	s := hooked(80, after, after)
	o := drain(t, s, answers(80, false)...)
	if cursor := o.GetStep().GetSnapshot().GetInboxCursor(); cursor != s.GetInboxCursor()+65 {
		t.Errorf("the cursor moves from %d to %d, want 65 items", s.GetInboxCursor(), cursor)
	}
}
