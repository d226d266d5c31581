package repair_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// waitingFor is a run that waits for approvals of commands.
func waitingFor(commands ...string) *harnessv1.Snapshot {
	s := waiting()
	s.PendingToolCalls = nil
	s.PendingTools = []*harnessv1.PendingTool{{
		Name: "run_command", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: &harnessv1.ToolAnnotations{Writes: true, Executes: true},
		ParametersSchema: content.Inline(`{"type":"object","properties":{"command":{"type":"string"},"timeout_seconds":{"type":"integer","minimum":1},"hosts":{"type":"array"},"unconfined":{"type":"string"}},"required":["command"],"additionalProperties":false}`),
	}}
	for i, command := range commands {
		s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{
			CallId: string(rune('a' + i)), Tool: "run_command", Kind: runstate.KindApproval, TurnNumber: 3, Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL,
			Arguments: content.Inline(command), Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Writes: true,
			Preview: &harnessv1.CallPreview{Digest: "d", Files: []*harnessv1.FilePreview{{Path: "x"}}},
		})
	}
	return s
}

func approveWith(change func(*harnessv1.Approval)) *harnessv1.InboxItem {
	item := approve("a", once)
	change(item.GetApproval())
	return item
}

func forRun(prefixes ...string) *harnessv1.InboxItem {
	return approveWith(func(a *harnessv1.Approval) {
		a.Decision = all
		for _, prefix := range prefixes {
			a.Rules = append(a.Rules, &harnessv1.ToolRule{Name: "run_command", Prefix: prefix})
		}
	})
}

// TestGrantsByRules: the rules of an approval are stored, and answer the other calls that they
// fit. An approval whose rules do not fit its call has no effect.
func TestGrantsByRules(t *testing.T) {
	for _, c := range []struct {
		prefixes []string
		grants   int
		left     string
		events   string
	}{
		{[]string{"go test"}, 1, "bd", "approval.answered approval.answered input.accepted"},
		{[]string{"go"}, 1, "d", "approval.answered approval.answered approval.answered input.accepted"},
		{[]string{"go test", "go vet"}, 2, "d", "approval.answered approval.answered approval.answered input.accepted"},
		{[]string{"go vet"}, 0, "abcd", "input.rejected"},
		{[]string{"go test;"}, 0, "abcd", "input.rejected"},
		{nil, 0, "", "approval.answered approval.answered approval.answered approval.answered input.accepted"},
	} {
		s := waitingFor(`{"command":"go test ./..."}`, `{"command":"go vet"}`, `{"command":"go test a"}`, `{"command":"go test b; rm x"}`)
		o := drain(t, s, forRun(c.prefixes...))
		after, left := o.GetStep().GetSnapshot(), ""
		for _, call := range runstate.AwaitedCalls(after) {
			left += call.GetCallId()
		}
		if got := strings.TrimSuffix(events(o), " session.resume"); left != c.left || len(after.GetGrants()) != c.grants || !strings.HasPrefix(got, c.events) {
			t.Errorf("%q: %s left, %d grants, %s", c.prefixes, left, len(after.GetGrants()), got)
		}
		for _, rule := range after.GetGrants() {
			if rule.GetPolicy() != harnessv1.ToolDecision_TOOL_DECISION_ALLOW || rule.GetName() != "run_command" {
				t.Errorf("%q: stored as %v", c.prefixes, rule)
			}
		}
		if whole := len(after.GetGrantedTools()) > 0; whole != (c.prefixes == nil) {
			t.Errorf("%q: the whole tool is granted: %v", c.prefixes, whole)
		}
	}
	alone := waitingFor(`{"command":"go test"}`)
	alone.PendingToolCalls[0].OnlyOnce = true
	if o := drain(t, alone, forRun("go test")); events(o) != "input.rejected" || len(o.GetStep().GetSnapshot().GetGrants()) > 0 {
		t.Errorf("a call that is approved alone: %s", events(o))
	}
	twice := drain(t, waitingFor(`{"command":"go test"}`, `{"command":"ls"}`), forRun("go test")).GetStep().GetSnapshot()
	if !runstate.GrantRules(twice, twice.GetGrants()) || len(twice.GetGrants()) != 1 {
		t.Errorf("granted twice: %v", twice.GetGrants())
	}
}

// TestChangedArguments: the call runs with the arguments that a person gave, and its result
// begins with what they changed. Arguments that the model could not have given have no effect.
func TestChangedArguments(t *testing.T) {
	given := func(arguments string) *harnessv1.InboxItem {
		return approveWith(func(a *harnessv1.Approval) { a.Arguments = content.Inline(arguments) })
	}
	for arguments, refusal := range map[string]string{
		`{"command":"go test ./pkg/..."}`:          "",
		`{"command":7}`:                            "command",
		`{"command":"ls","force":true}`:            "force",
		`{"timeout_seconds":1}`:                    "command",
		`{"command":"ls","timeout_seconds":0}`:     "timeout_seconds",
		`go test`:                                  "JSON",
		`[]`:                                       "object",
		`{"command":"ls","unconfined":"because"}`:  "approval.arguments.unconfined",
		`{"command":"ls","hosts":["example.com"]}`: "approval.arguments.hosts",
		`{"command":"go test","timeout_seconds":5,"hosts":[]}`: "approval.arguments.hosts",
	} {
		o := drain(t, waitingFor(`{"command":"go test ./...","timeout_seconds":60}`), given(arguments))
		call := o.GetStep().GetSnapshot().GetPendingToolCalls()[0]
		if refusal != "" {
			rejected := o.GetEvents()[0].GetInputRejected().GetReason()
			if !strings.Contains(rejected, refusal) || !strings.HasPrefix(rejected, "approval.arguments") || call.GetClass() != harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL || call.GetChanges() != "" {
				t.Errorf("%s: %q, then %v", arguments, rejected, call)
			}
			continue
		}
		want := "The user changed this call before it ran. It ran with:\n- command: \"go test ./pkg/...\"\n- timeout_seconds: left out\nIts result:\n"
		if call.GetClass() != harnessv1.PendingClass_PENDING_CLASS_APPROVED || call.GetArguments().GetInline() != arguments || call.GetChanges() != want || len(call.GetPreview().GetFiles()) > 0 {
			t.Errorf("%s: %v", arguments, call)
		}
		if got := o.GetEvents()[0].GetApprovalAnswered().GetArguments().GetInline(); got != arguments {
			t.Errorf("the event has %q", got)
		}
	}
	same := drain(t, waitingFor(`{"command":"ls"}`), given(` { "command" : "ls" } `)).GetStep().GetSnapshot().GetPendingToolCalls()[0]
	if same.GetChanges() != "" || same.GetArguments().GetInline() != `{"command":"ls"}` {
		t.Errorf("without a difference: %v", same)
	}
	old := waitingFor(`{"command":"ls"}`)
	old.PendingTools = nil
	if o := drain(t, old, given(`{"command":"pwd"}`)); events(o) != "input.rejected" {
		t.Errorf("a tool that is unknown: %s", events(o))
	}
}

// TestChangedArgumentsFollowThePolicy of the agent, whose denials no approval lifts.
func TestChangedArgumentsFollowThePolicy(t *testing.T) {
	s := waitingFor(`{"command":"ls"}`)
	s.Definition = &harnessv1.Definition{Tools: []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY, Pattern: "^rm", Reason: "Not here."}}}
	item := approveWith(func(a *harnessv1.Approval) { a.Arguments = content.Inline(`{"command":"rm x"}`) })
	o := drain(t, s, item)
	if reason := o.GetEvents()[0].GetInputRejected().GetReason(); !strings.Contains(reason, "Not here.") || len(runstate.AwaitedCalls(o.GetStep().GetSnapshot())) != 1 {
		t.Errorf("got %q", reason)
	}
}

// TestAChangedCallOfAClient: the client receives the changed arguments, and its result begins
// with the changes.
func TestAChangedCallOfAClient(t *testing.T) {
	s := waitingFor(`{"command":"ls"}`)
	s.PendingTools[0].Origin, s.PendingToolCalls[0].Origin = harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT, harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
	o := drain(t, s, approveWith(func(a *harnessv1.Approval) { a.Arguments = content.Inline(`{"command":"pwd"}`) }))
	next := proto.CloneOf(o.GetStep().GetSnapshot())
	if call := next.GetPendingToolCalls()[0]; call.GetKind() != runstate.KindClientTool || call.GetArguments().GetInline() != `{"command":"pwd"}` {
		t.Fatalf("the client is sent %v", call)
	}
	messages := drain(t, next, result("a", "/work")).GetAppended()
	if len(messages) != 1 || messages[0].GetContent().GetInline() != "The user changed this call before it ran. It ran with:\n- command: \"pwd\"\nIts result:\n/work" {
		t.Errorf("the result is %v", messages)
	}
}
