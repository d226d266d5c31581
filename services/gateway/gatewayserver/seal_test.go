package gatewayserver_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/seal"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// TestForgedApprovalAnswersNoCall: a person can still answer a call for which an approval without a seal is
// in the inbox.
func TestForgedApprovalAnswersNoCall(t *testing.T) {
	keys, err := seal.Parse(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	sealing, err := nats.Open(t.Context(), jetstream.Config{Seal: keys}, jetstream.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t, func(c *gatewayserver.Config) { c.Log = sealing })
	defer sealing.Close()
	defer func() { b.stop(); b.stop = func() {} }()
	h := b.started("r1").step("park", func(s *harnessv1.Step) {
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
		s.Snapshot.PendingToolCalls = []*harnessv1.PendingCall{awaited("c1", "approval")}
		s.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: &harnessv1.StopReason{Kind: "approval"}}}
	})
	approval := &harnessv1.Approval{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}
	if _, _, err := shared.AppendInbox(b.ctx, h.run, &harnessv1.InboxItem{Id: "forged", Input: &harnessv1.InboxItem_Approval{Approval: approval}}, 0); err != nil {
		t.Fatal(err)
	}
	send := func(id string) error {
		_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1", RequestId: id, Input: &harnessv1.SendInputRequest_Approval{Approval: approval}})
		return err
	}
	b.must(send("i1"))
	b.refused(send("i2"), codes.AlreadyExists, "CALL_ANSWERED")
}
