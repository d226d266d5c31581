package gatewayserver_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestRulesAndArgumentsOfApprovals are checked before the answer is stored, with the place of
// the mistake; the call still waits.
func TestRulesAndArgumentsOfApprovals(t *testing.T) {
	b := newBed(t)
	command := func(id, line string) *harnessv1.PendingCall {
		call := awaited(id, "approval")
		call.Tool, call.Arguments = "run_command", content.Inline(`{"command":"`+line+`"}`)
		return call
	}
	h := b.started("r1").step("park", func(s *harnessv1.Step) {
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
		s.Snapshot.PendingToolCalls = []*harnessv1.PendingCall{command("c1", "go test"), command("c2", "go test a"), command("c3", "rm x"), awaited("c4", "approval")}
		s.Snapshot.Definition = &harnessv1.Definition{Tools: []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY, Pattern: "secret", Reason: "No secrets."}}}
		s.Snapshot.PendingTools = []*harnessv1.PendingTool{{
			Name: "run_command", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: &harnessv1.ToolAnnotations{Executes: true},
			ParametersSchema: content.Inline(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`),
		}}
		s.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: &harnessv1.StopReason{Kind: "approval"}}}
	})
	rules := func(prefixes ...string) func(*harnessv1.Approval) {
		return func(a *harnessv1.Approval) {
			a.Decision = harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN
			for _, prefix := range prefixes {
				a.Rules = append(a.Rules, &harnessv1.ToolRule{Name: "run_command", Prefix: prefix})
			}
		}
	}
	arguments := func(text string) func(*harnessv1.Approval) {
		return func(a *harnessv1.Approval) { a.Arguments = content.Inline(text) }
	}
	send := func(id, call string, changes ...func(*harnessv1.Approval)) error {
		a := &harnessv1.Approval{CallId: call, Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}
		for _, change := range changes {
			change(a)
		}
		_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1", RequestId: id,
			Input: &harnessv1.SendInputRequest_Approval{Approval: a}})
		return err
	}
	for i, c := range []struct {
		call   string
		change []func(*harnessv1.Approval)
		want   string
	}{
		{"c1", []func(*harnessv1.Approval){rules("go vet")}, "approval.rules"},
		{"c1", []func(*harnessv1.Approval){rules("go test; rm")}, "approval.rules[0].prefix"},
		{"c1", []func(*harnessv1.Approval){rules(strings.Fields("go a b c d e f g h")...)}, "approval.rules"},
		{"c1", []func(*harnessv1.Approval){rules("go"), arguments(`{"command":"ls"}`)}, "approval.arguments"},
		{"c1", []func(*harnessv1.Approval){rules("go"), func(a *harnessv1.Approval) { a.Decision = harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY }}, "approval.rules"},
		{"c1", []func(*harnessv1.Approval){arguments(`{"command":7}`)}, "command: got number"},
		{"c1", []func(*harnessv1.Approval){arguments(`{"command":"cat secret"}`)}, "No secrets."},
		{"c1", []func(*harnessv1.Approval){arguments(`ls`)}, "approval.arguments"},
		{"c1", []func(*harnessv1.Approval){func(a *harnessv1.Approval) {
			a.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d"}}}
		}}, "approval.arguments"},
		{"c4", []func(*harnessv1.Approval){arguments(`{}`)}, "approval.call_id"},
	} {
		err := send("bad"+string(rune('a'+i)), c.call, c.change...)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: got %v, want %s", i, err, c.want)
		}
	}
	h.holds(0)
	b.must(send("i1", "c1", rules("go test")))
	b.refused(send("i2", "c2"), codes.AlreadyExists, "CALL_ANSWERED") // the rule fits it too
	b.must(send("i3", "c3", arguments(`{"command":"`+strings.Repeat("l", 20_000)+`"}`)))
	h.holds(2)
	if stored := h.inbox()[1].GetApproval().GetArguments(); stored.GetBlob() == nil {
		t.Error("long arguments are stored inline")
	}
}
