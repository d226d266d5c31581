package gatewayserver_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func message(text string) *harnessv1.UserMessage {
	return &harnessv1.UserMessage{Content: content.Inline(text)}
}

func (b *bed) sendMessage(run, id, text string) (*harnessv1.SendInputResponse, error) {
	return b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: message(text)}})
}

func (b *bed) approve(run, id, call string) (*harnessv1.SendInputResponse, error) {
	return b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{CallId: call, Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}}})
}

// inbox returns all items that were ever stored in a run's inbox.
func (h *hand) inbox() []*harnessv1.InboxItem {
	h.b.t.Helper()
	items, err := h.b.log.Inbox(h.b.ctx, h.run, 0, h.drained())
	h.b.must(err)
	return items
}

func (h *hand) holds(n int) {
	h.b.t.Helper()
	if got := len(h.inbox()); got != n {
		h.b.t.Fatalf("the inbox holds %d items, want %d", got, n)
	}
}

func TestSendMessage(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	for i := range 2 {
		resp, err := b.sendMessage("r1", "m1", "hello")
		b.must(err)
		if resp.GetRequestId() != "m1" || resp.GetExisted() != (i == 1) {
			t.Fatalf("send %d: %v", i, resp)
		}
	}
	resp, err := b.sendMessage("r1", "", "again")
	b.must(err)
	if resp.GetRequestId() == "" || resp.GetExisted() {
		t.Fatalf("got %v", resp)
	}
	large := strings.Repeat("x", 20_000)
	_, err = b.sendMessage("r1", "m2", large)
	b.must(err)
	h.holds(3)
	items := h.inbox()
	if items[0].GetTime() == nil || items[0].GetUserMessage().GetContent().GetInline() != "hello" {
		t.Fatalf("got %v", items[0])
	}
	if text := b.blob("r1", items[2].GetUserMessage().GetContent().GetBlob().GetDigest()); text != large {
		t.Fatalf("got %d bytes", len(text))
	}
	_, err = b.sendMessage("r1", "m3", strings.Repeat("x", 1<<20+1))
	b.refused(err, codes.ResourceExhausted, "TOO_LARGE")
	_, err = b.sendMessage("r1", "m3", " \n")
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	_, err = b.sendMessage("other", "m3", "hello")
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
	_, err = b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1"})
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	h.holds(3)
}

func TestApprove(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").park("approval", approvalCall("c1"), approvalCall("c2"))
	_, err := b.approve("r1", "a1", "c1")
	b.must(err)
	again, err := b.approve("r1", "a1", "c1")
	b.must(err)
	if !again.GetExisted() {
		t.Fatal("the same answer counts twice")
	}
	_, err = b.approve("r1", "a2", "c1")
	b.refused(err, codes.AlreadyExists, "CALL_ANSWERED")
	_, err = b.approve("r1", "a3", "c9")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	h.holds(1)

	cursor := h.drained()
	h.step("repair", func(s *harnessv1.Step) {
		s.Snapshot.InboxCursor = cursor
		s.Snapshot.PendingToolCalls = []*harnessv1.PendingCall{approvalCall("c2")}
		s.Snapshot.AnsweredCalls = []uint64{runlog.HashID("c1")}
		s.Snapshot.DrainedItems = []uint64{runlog.HashID("a1")}
	})
	again, err = b.approve("r1", "a1", "c1")
	b.must(err)
	if !again.GetExisted() {
		t.Fatal("the same answer counts twice after it was drained")
	}
	_, err = b.approve("r1", "a4", "c1")
	b.refused(err, codes.AlreadyExists, "CALL_ANSWERED")
	h.holds(1)
}

// If many clients answer at the same time, exactly one answer is accepted.
func TestApproveRace(t *testing.T) {
	b := newBed(t)
	b.started("r1").park("approval", approvalCall("c1"))
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := b.approve("r1", "", "c1")
			switch {
			case err == nil:
				taken.Add(1)
			case fault.ReasonOf(err) != "CALL_ANSWERED":
				t.Error(err)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Fatalf("%d answers were taken", taken.Load())
	}
}

// TestMessagesPoke: a message makes the worker of its run read the inbox.
func TestMessagesPoke(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	pokes := make(chan runlog.Run, 16)
	stop, err := b.log.OnPoke(func(r runlog.Run) { pokes <- r })
	b.must(err)
	defer stop()
	_, err = b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1", Input: &harnessv1.SendInputRequest_UserMessage{
		UserMessage: &harnessv1.UserMessage{Content: content.Inline("Mind the gap.")},
	}})
	b.must(err)
	h.holds(1)
	for r := range pokes {
		if r == h.run {
			break
		}
	}
}

func TestInterruptResumeCancel(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	pokes := make(chan runlog.Run, 16)
	stop, err := b.log.OnPoke(func(r runlog.Run) {
		if r == h.run {
			pokes <- r
		}
	})
	b.must(err)
	defer stop()
	interrupt := func() error {
		_, err := b.client.InterruptRun(b.ctx, &harnessv1.InterruptRunRequest{Namespace: b.namespace, RunId: "r1", Reason: "stop"})
		return err
	}
	resume := func() (bool, error) {
		resp, err := b.client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: b.namespace, RunId: "r1"})
		return resp.GetAlreadyRunning(), err
	}
	cancel := func() error {
		_, err := b.client.CancelRun(b.ctx, &harnessv1.CancelRunRequest{Namespace: b.namespace, RunId: "r1"})
		return err
	}
	running, err := resume()
	b.must(err)
	if !running {
		t.Fatal("a running run was resumed")
	}
	h.holds(0)
	b.must(interrupt())
	<-pokes
	h.holds(1)
	b.must(interrupt()) // one is on its way
	<-pokes
	h.holds(1)
	if running, err = resume(); err != nil || running {
		t.Fatalf("resume after an interrupt: %v, %v", running, err)
	}
	h.holds(2)
	b.must(interrupt())
	h.holds(3)
	h.park("interrupted")
	b.must(interrupt()) // it is parked already
	h.holds(3)
	if running, err = resume(); err != nil || running {
		t.Fatalf("resume: %v, %v", running, err)
	}
	h.holds(4)
	b.must(interrupt()) // it is about to run
	h.holds(5)
	h.park("approval", approvalCall("c1"))
	b.must(interrupt()) // answers the calls
	h.holds(6)
	b.must(cancel())
	h.holds(7)
	h.end(harnessv1.RunStatus_RUN_STATUS_CANCELLED)
	b.refused(cancel(), codes.FailedPrecondition, "RUN_ENDED")
	b.must(interrupt())
	h.holds(7)
	if running, err = resume(); err != nil || running {
		t.Fatalf("resume of a cancelled run: %v, %v", running, err)
	}
	h.holds(8)
	h.resume().end(harnessv1.RunStatus_RUN_STATUS_DONE)
	_, err = resume()
	b.refused(err, codes.FailedPrecondition, "RUN_ENDED")
	_, err = b.sendMessage("r1", "m1", "more")
	b.must(err)
	h.holds(9)
}

// stream is the client's side of a Run stream.
type stream struct {
	updates
	harnessv1.GatewayService_RunClient
}

func (b *bed) open(ctx context.Context, first *harnessv1.RunRequest) stream {
	b.t.Helper()
	s, err := b.client.Run(ctx)
	b.must(err)
	b.must(s.Send(first))
	return stream{updates{b, func() (*harnessv1.RunUpdate, error) {
		resp, err := s.Recv()
		return resp.GetUpdate(), err
	}}, s}
}

func (b *bed) attach(run string, after uint64) *harnessv1.RunRequest {
	return &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{Namespace: b.namespace, RunId: run, AfterVersion: after}}}
}

func TestRunStream(t *testing.T) {
	b := newBed(t)
	s := b.open(b.ctx, &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Start{Start: b.start("r1", "do it")}})
	s.expect("attached 1")
	h := b.openRun("r1").aTurn(1).park("approval", approvalCall("c9"))
	s.expect("3-0 step_start", "4-0 model_response text 1", "5-0 tool_result", "result PARKED approval")
	approve := func(id, call string) {
		b.must(s.Send(&harnessv1.RunRequest{RequestId: id, Request: &harnessv1.RunRequest_Approval{
			Approval: &harnessv1.Approval{CallId: call, Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY}}}))
	}
	approve("a1", "c8")
	approve("a2", "c9")
	approve("a2", "c9")
	approve("a3", "c9")
	s.expect("receipt a1 CALL_NOT_PENDING", "receipt a2 ", "receipt a2 ", "receipt a3 CALL_ANSWERED")
	h.holds(1)
	h.resume()
	s.expect("8-0 session_resume")
	b.must(s.Send(&harnessv1.RunRequest{RequestId: "i1", Request: &harnessv1.RunRequest_Interrupt{Interrupt: &harnessv1.Interrupt{}}}))
	s.expect("receipt i1 ")
	h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	s.expect("9-0 session_complete", "result DONE agent_done")
	s.end()
}

func TestRunStreamAttachToEnded(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").end(harnessv1.RunStatus_RUN_STATUS_DONE)
	quiet := b.open(b.ctx, b.attach("r1", 2))
	quiet.expect("attached 2", "result DONE agent_done")
	b.must(quiet.CloseSend())
	quiet.end()

	s := b.open(b.ctx, b.attach("r1", 0))
	s.expect("attached 2", "2-0 session_complete", "result DONE agent_done")
	b.must(s.Send(&harnessv1.RunRequest{RequestId: "m1", Request: &harnessv1.RunRequest_UserMessage{UserMessage: message("more")}}))
	b.must(s.CloseSend()) // the message is waiting: it is not over
	s.expect("receipt m1 ")
	h.resume().end(harnessv1.RunStatus_RUN_STATUS_DONE)
	s.expect("3-0 session_resume", "4-0 session_complete", "result DONE agent_done")
	s.end()
}

func TestRunStreamLeaving(t *testing.T) {
	b := newBed(t)
	ctx, leave := context.WithCancel(b.ctx)
	s := b.open(ctx, &harnessv1.RunRequest{RequestId: "q", Request: &harnessv1.RunRequest_Start{Start: b.start("", "do it")}})
	first, err := s.recv()
	b.must(err)
	id := first.GetAttached().GetRunId()
	leave()
	if _, err := s.recv(); status.Code(err) != codes.Canceled {
		t.Fatalf("got %v", err)
	}
	h := b.openRun(id).aTurn(1)
	h.holds(0)
	back := b.open(b.ctx, b.attach(id, 3))
	back.expect("attached 6", "4-0 model_response text 1", "5-0 tool_result")
	b.must(back.CloseSend()) // the client sends no more; the run continues
	h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	back.expect("7-0 session_complete", "result DONE agent_done")
	back.end()
}

func TestRunStreamRefusals(t *testing.T) {
	b := newBed(t)
	b.started("r1")
	for name, requests := range map[string][]*harnessv1.RunRequest{
		"nothing":     {},
		"input first": {{Request: &harnessv1.RunRequest_Cancel{Cancel: &harnessv1.Cancel{}}}},
		"bad start":   {{Request: &harnessv1.RunRequest_Start{Start: &harnessv1.StartRunRequest{}}}},
		"two attach":  {b.attach("r1", 0), b.attach("r1", 0)},
		"empty":       {b.attach("r1", 0), {}},
	} {
		s, err := b.client.Run(b.ctx)
		b.must(err)
		for _, r := range requests {
			if err := s.Send(r); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		if len(requests) == 0 {
			b.must(s.CloseSend())
		}
		for err == nil {
			_, err = s.Recv()
		}
		if status.Code(err) != codes.InvalidArgument || fault.ReasonOf(err) != "INVALID_FIELD" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	s := b.open(b.ctx, b.attach("other", 0))
	_, err := s.recv()
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
}
