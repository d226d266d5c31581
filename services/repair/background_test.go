package repair_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestHooksOfCallsInTheBackground: the hooks after a tool call are called once, when the model gets the result.
func TestHooksOfCallsInTheBackground(t *testing.T) {
	ended := func(status harnessv1.RunStatus, hooks ...*harnessv1.Hook) *harnessv1.Snapshot {
		s := running()
		s.Definition = &harnessv1.Definition{Hooks: hooks}
		s.Children = []*harnessv1.Child{{
			RunId: "a-1", CallId: "c", Agent: "look", Want: harnessv1.ChildWant_CHILD_WANT_WORK, Order: 1, Sent: 1, Background: true,
			Report: &harnessv1.ChildReport{Version: 9, Order: 1, Status: status, Accepted: true, Answer: content.Inline("It is so.")},
		}}
		return s
	}
	after := &harnessv1.Hook{
		Id: "after", Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Cel: "call_id == 'c' && tool == 'look' && result.contains('It is so.')",
		Tools: []string{"look"}, Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Context: "seen",
	}
	onError := &harnessv1.Hook{Id: "failed", Topic: harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Context: "failed"}
	o := drain(t, ended(harnessv1.RunStatus_RUN_STATUS_DONE, after, onError))
	if verdict(o) != "compaction" || events(o) != "hook.result guidance.injected" || len(o.GetAppended()) != 2 || !strings.Contains(content.Text(o.GetAppended()[0].GetContent()), "It is so.") {
		t.Errorf("%s: %s, %v", verdict(o), events(o), o.GetAppended())
	}
	if again := drain(t, o.GetStep().GetSnapshot()); len(again.GetEvents()) != 0 {
		t.Errorf("the next decision calls them again: %s", events(again))
	}
	if o := drain(t, ended(harnessv1.RunStatus_RUN_STATUS_FAILED, after, onError)); !strings.HasPrefix(events(o), "hook.result hook.result") {
		t.Errorf("after a failure: %s", events(o))
	}
	stop := &harnessv1.Hook{Id: "stop", Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_ABORT, Reason: "not so"}
	o = drain(t, ended(harnessv1.RunStatus_RUN_STATUS_DONE, stop))
	if failure := o.GetStep().GetTurnComplete().GetError(); verdict(o) != "stopdecision" || !strings.HasPrefix(failure.GetMessage(), "not so") {
		t.Errorf("after an abort: %s, %v", verdict(o), failure)
	}
}
