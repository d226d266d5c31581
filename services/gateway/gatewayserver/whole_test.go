package gatewayserver_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// parkStored parks a run for calls whose arguments are stored as blobs.
func (b *bed) parkStored(id string, texts ...string) []*harnessv1.PendingCall {
	b.t.Helper()
	h := b.started(id)
	var calls []*harnessv1.PendingCall
	var events []*harnessv1.Event
	for i, text := range texts {
		ref, err := b.log.PutBlob(b.ctx, h.run, []byte(text))
		b.must(err)
		call := approvalCall("c" + string(rune('1'+i)))
		call.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}
		call.Preview = &harnessv1.CallPreview{Digest: content.Digest([]byte(text))}
		calls = append(calls, call)
		events = append(events, event.ToolCalled(call.GetCallId(), call.GetTool(), call.GetArguments(), "approval", 0), event.ApprovalRequested(call))
	}
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{Attempt: 1}}}, nil, events...)
	h.park("approval", calls...)
	return calls
}

// What a person decides about is whole in each answer, however the arguments are stored.
func TestCallsThatWaitForAnApprovalAreWhole(t *testing.T) {
	b := newBed(t)
	text := `{"command":"` + strings.Repeat("x", 22_900) + ` # the end"}`
	b.parkStored("r1", text)
	one, err := b.client.ListPending(b.ctx, &harnessv1.ListPendingRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	var all *harnessv1.ListPendingResponse
	b.eventually("the run is listed", func() bool {
		all, err = b.client.ListPending(b.ctx, &harnessv1.ListPendingRequest{Namespace: b.namespace})
		b.must(err)
		return len(all.GetPending()) == 1
	})
	run, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	got := map[string]*harnessv1.Content{
		"the calls of a run": one.GetPending()[0].GetCall().GetArguments(), "all calls": all.GetPending()[0].GetCall().GetArguments(),
		"the run": run.GetResult().GetPending()[0].GetArguments(),
	}
	watch := b.watch(&harnessv1.WatchRunRequest{RunId: "r1", Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	for {
		u, err := watch.recv()
		if err != nil {
			break
		}
		if a := u.GetEvent().GetApprovalRequested(); a != nil {
			got["the event"] = a.GetArguments()
		}
		if c := u.GetEvent().GetToolCall(); c != nil {
			got["the announcement"] = c.GetArguments()
		}
		if r := u.GetResult(); r != nil {
			got["the result"] = r.GetPending()[0].GetArguments()
		}
	}
	if len(got) != 6 {
		t.Errorf("only %d places", len(got))
	}
	for where, c := range got {
		if c.GetInline() != text {
			t.Errorf("%s has %d bytes inline of %d", where, len(c.GetInline()), len(text))
		}
	}
}

// Arguments beyond the bound stay references, so that an answer is never too large for its
// clients.
func TestVeryLongCallsStayReferences(t *testing.T) {
	b := newBed(t)
	b.parkStored("r1", strings.Repeat("a", 600<<10), strings.Repeat("b", 600<<10), strings.Repeat("c", 300<<10))
	run, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	for i, whole := range []bool{true, false, true} {
		if c := run.GetResult().GetPending()[i].GetArguments(); (c.GetBlob() == nil) != whole {
			t.Errorf("call %d is whole: %t", i+1, !whole)
		}
	}
}

func TestAnApprovalOfAnotherCallThanTheOneShown(t *testing.T) {
	b := newBed(t)
	calls := b.parkStored("r1", `{"command":"make"}`)
	h := b.openRun("r1")
	approve := func(id, digest string) error {
		_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1", RequestId: id,
			Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
				CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, Digest: digest,
			}}})
		return err
	}
	b.refused(approve("i1", content.Digest([]byte(`{"command":"make all"}`))), codes.FailedPrecondition, "CALL_CHANGED")
	b.refused(approve("i2", "abc"), codes.InvalidArgument, "INVALID_FIELD")
	h.holds(0)
	b.must(approve("i3", calls[0].GetPreview().GetDigest()))
	b.refused(approve("i4", content.Digest([]byte("x"))), codes.AlreadyExists, "CALL_ANSWERED")
	h.holds(1)
	// A call of an earlier version has no digest.
	b.started("r2").park("approval", approvalCall("c1"))
	_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r2",
		Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
			CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, Digest: content.Digest([]byte("x")),
		}}})
	b.refused(err, codes.FailedPrecondition, "CALL_CHANGED")
	_, err = b.approve("r2", "i5", "c1")
	b.must(err)
}

// TestAnApprovalOfAShortenedCallNamesIt: a client that has received a part of a call approves it only with
// the digest of its preview, and may deny it without.
func TestAnApprovalOfAShortenedCallNamesIt(t *testing.T) {
	b := newBed(t)
	calls := b.parkStored("r1", strings.Repeat("a", 600<<10), strings.Repeat("b", 600<<10), strings.Repeat("c", 300<<10))
	b.parkStored("r2", strings.Repeat("a", 900<<10))
	approve := func(run, call, digest string, d harnessv1.ApprovalDecision) error {
		_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: run,
			Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{CallId: call, Decision: d, Digest: digest}}})
		return err
	}
	const once, all, deny = harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN, harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY
	for _, d := range []harnessv1.ApprovalDecision{once, all} {
		err := approve("r1", "c2", "", d)
		b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
		if ref := calls[1].GetArguments().GetBlob(); !strings.Contains(err.Error(), "approval.digest") || !strings.Contains(err.Error(), ref.GetDigest()) {
			t.Errorf("the error does not name the blob: %v", err)
		}
	}
	b.must(approve("r1", "c1", "", deny))
	b.must(approve("r1", "c2", calls[1].GetPreview().GetDigest(), once))
	b.must(approve("r2", "c1", "", once))
}
