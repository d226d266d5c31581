package steer_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestSendAndApprove(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("r", "default", harnesstest.ASpec()).Parked("c1")
	f.Add("two", "default", harnesstest.ASpec()).Parked("c1", "c2")
	f.Add("none", "default", harnesstest.ASpec()).Done()
	server := []string{"--server", f.Address}
	for _, test := range []struct {
		args []string
		want proto.Message
	}{
		{[]string{"send", "r", "look", "here"}, &harnessv1.UserMessage{Content: content.Inline("look here")}},
		{[]string{"approve", "r"}, &harnessv1.Approval{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}},
		{[]string{"approve", "two", "c2", "--always"}, &harnessv1.Approval{CallId: "c2", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN}},
		{[]string{"approve", "r", "--deny", "--reason", "no"}, &harnessv1.Approval{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "no"}},
	} {
		if got := harnesstest.Call(t, nil, "", append(test.args, server...)...); got.Code != 0 || got.Out != "" {
			t.Errorf("%q: %+v", test.args, got)
		}
		if got := f.Inputs[len(f.Inputs)-1]; !proto.Equal(got, test.want) {
			t.Errorf("%q sent %v", test.args, got)
		}
	}
	if got := harnesstest.Call(t, nil, "", append(server, "approve", "two")...); got.Code != 1 {
		t.Errorf("%+v", got)
	}
	for run, want := range map[string]string{"two": `["c1" "c2"]`, "none": "no approval", "gone": "not found"} {
		if got := harnesstest.Call(t, nil, "", "approve", run, "--server", f.Address); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v", run, got)
		}
	}
}

func TestInterruptAndCancel(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Took = func(r *harnesstest.Run, id string, input proto.Message) {
		if _, ok := input.(*harnessv1.Interrupt); ok {
			r.Interrupted(id)
			return
		}
		r.Accept(id, "cancel")
		r.Rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_CANCELLED, Reason: &harnessv1.StopReason{Kind: "cancelled"}})
	}
	f.Add("r", "default", harnesstest.ASpec())
	if got := harnesstest.Call(t, nil, "", "interrupt", "r", "--server", f.Address); got.Code != 0 || got.Out != "r PARKED interrupted\n" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "cancel", "r", "--server", f.Address); got.Code != 0 || got.Out != "r CANCELLED cancelled\n" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "cancel", "r", "--server", f.Address); got.Code != 1 || !strings.Contains(got.Err, "has ended") {
		t.Errorf("%+v", got)
	}
}
