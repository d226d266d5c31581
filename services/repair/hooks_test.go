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
	if got, want := events(o), "tool.error hook.result hook.result input.accepted input.accepted step.start step.end guidance.injected guidance.injected"; got != want {
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

// TestDecisionBoundsTheEventsOfHooks: further items stay in the inbox.
func TestDecisionBoundsTheEventsOfHooks(t *testing.T) {
	after := harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	s := hooked(80, after, after)
	o := drain(t, s, answers(80, false)...)
	if cursor := o.GetStep().GetSnapshot().GetInboxCursor(); cursor != s.GetInboxCursor()+65 {
		t.Errorf("the cursor moves from %d to %d, want 65 items", s.GetInboxCursor(), cursor)
	}
}

// TestAnswerThatEndsATurnFiresAfterStep: after the end of the turn, with its number. A hook
// that aborts ends it with its error, and one that aborts after the call ends the step with
// that error.
func TestAnswerThatEndsATurnFiresAfterStep(t *testing.T) {
	afterCall, afterStep := harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP
	for _, c := range []struct{ abortAt, events, outcome, failure string }{
		{"", "tool.result hook.result input.accepted step.start step.end hook.result guidance.injected guidance.injected", "completed", ""},
		{"h1", "tool.result hook.result input.accepted step.start step.end hook.result guidance.injected guidance.injected", "completed", "no (hook h1)"},
		{"h0", "tool.result hook.result input.accepted step.start step.end hook.result guidance.injected guidance.injected", "error", "no (hook h0)"},
	} {
		s := hooked(1, afterCall, afterStep)
		for _, h := range s.GetDefinition().GetHooks() {
			if h.GetId() == c.abortAt {
				h.Action, h.Reason = harnessv1.HookAction_HOOK_ACTION_ABORT, "no"
			}
		}
		o := drain(t, s, answers(1, false)...)
		if got := events(o); got != c.events {
			t.Errorf("abort at %q: the events are %s, want %s", c.abortAt, got, c.events)
		}
		if got := o.GetEvents()[5].GetHookResult().GetHookId(); got != "h1" || o.GetEvents()[5].GetTurnNumber() != 3 {
			t.Errorf("abort at %q: %s is called in turn %d", c.abortAt, got, o.GetEvents()[5].GetTurnNumber())
		}
		if got := o.GetEvents()[4].GetStepEnd().GetOutcome(); got != c.outcome {
			t.Errorf("abort at %q: the step ends %s, want %s", c.abortAt, got, c.outcome)
		}
		if got := o.GetStep().GetTurnComplete().GetError().GetMessage(); got != c.failure || verdict(o) != "stopdecision" {
			t.Errorf("abort at %q: goes to %s with %q, want %q", c.abortAt, verdict(o), got, c.failure)
		}
	}
}
