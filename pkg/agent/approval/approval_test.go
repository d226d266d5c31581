package approval_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestAWaitForAnAddressIsApprovedByHost: the rule that is proposed is accepted, and one for another
// host is not.
func TestAWaitForAnAddressIsApprovedByHost(t *testing.T) {
	wait := &harnessv1.ToolSpec{Name: "wait", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS}
	pending := &harnessv1.PendingCall{Tool: "wait", Wait: &harnessv1.WaitState{Url: "https://a.example/x"}}
	const arguments = `{"url":"https://a.example/x"}`
	proposed := policy.Propose(approval.Reached(pending, wait), arguments, "")
	if len(proposed) != 1 || proposed[0].GetName() != "web_fetch" || proposed[0].GetHost() != "a.example" {
		t.Fatalf("proposed %v", proposed)
	}
	call := approval.Call{Snapshot: &harnessv1.Snapshot{}, Pending: pending, Tool: wait, Arguments: arguments}
	for host, fits := range map[string]bool{"a.example": true, "b.example": false} {
		err := approval.Check(call, &harnessv1.Approval{
			Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN,
			Rules:    []*harnessv1.ToolRule{{Name: "web_fetch", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW, Host: host}},
		}, "")
		if (err == nil) != fits {
			t.Errorf("%s: %v", host, err)
		}
	}
	if other := (&harnessv1.PendingCall{Tool: "wait", Wait: &harnessv1.WaitState{Path: "a"}}); approval.Reached(other, wait) != wait {
		t.Error("another wait has the rules of web tools")
	}
}

// TestDisguisedArguments: what JSON escapes is read as the text that it means.
func TestDisguisedArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"command":"ls\u00a0-la","n":[{"p\u0430th":"x"}]}`: "ls<U+00A0>-la p<U+0430>th",
		`{"command":"ls -la"}`:                              "",
		"no JSON\u2800":                                     "JSON<U+2800>",
	} {
		if got := strings.Join(approval.Disguised(arguments), " "); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
}
