package gatewayserver_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// asToken is the context of calls with a token of a name, with quotas, as the guard passes them on.
func (b *bed) asToken(name, quotas string) context.Context {
	return metadata.AppendToOutgoingContext(b.ctx, "harness-caller", b.named(name), "harness-token", "bounded", "harness-quotas", quotas)
}

// named is a name of a token that no other test has.
func (b *bed) named(name string) string { return b.namespace + name }

// exceeds checks that an error is the refusal for a quota, with its number.
func (b *bed) exceeds(err error, quota, number string) {
	b.t.Helper()
	if status.Code(err) != codes.ResourceExhausted || fault.ReasonOf(err) != "QUOTA_EXCEEDED" || fault.Metadata(err, "limit") != number ||
		!strings.Contains(err.Error(), number) || !strings.Contains(err.Error(), quota+"= in its line") {
		b.t.Errorf("%s: %v", quota, err)
	}
}

// send sends a run an input of the holder of a token.
func (b *bed) send(ctx context.Context, run, text string) error {
	_, err := b.client.SendInput(ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: run, Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: message(text)}})
	return err
}

// TestStartsTogetherDoNotExceedAQuota: as many are admitted at the same moment as may be at work.
func TestStartsTogetherDoNotExceedAQuota(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}, 20), make(chan struct{})
	b := newBed(t, func(c *gatewayserver.Config) {
		c.Workspaces = func(context.Context, *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error) {
			inside <- struct{}{}
			<-leave
			return &harnessv1.DescribeWorkspaceResponse{}, nil
		}
	})
	var started, refused atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := b.client.StartRun(b.asToken("a", "3,100"), b.start("", "do it"))
			if err == nil {
				started.Add(1)
				return
			}
			b.exceeds(err, "runs", "3")
			if refused.Add(1) == 17 {
				close(leave) // the others wait inside
			}
		})
	}
	all.Wait()
	if started.Load() != 3 || len(inside) != 3 {
		t.Errorf("%d runs were started, want 3", started.Load())
	}
	_, err := b.client.StartRun(b.asToken("a", "3,100"), b.start("", "do it"))
	b.exceeds(err, "runs", "3")
	if _, err := b.client.StartRun(b.asToken("b", "3,100"), b.start("", "do it")); err != nil {
		t.Errorf("another token: %v", err)
	}
}

// TestInputsThatWakeRunsCountAsRunsAtWork: messages to ended runs, and answers to parked ones, until the
// quota of the token; those that the run refuses do not count, and neither do those of a run that has followed.
func TestInputsThatWakeRunsCountAsRunsAtWork(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	b := newBed(t, func(c *gatewayserver.Config) {
		c.Workspaces = func(_ context.Context, r *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error) {
			if r.GetWorkspace() == "/none" {
				return nil, status.Error(codes.InvalidArgument, "none")
			}
			return &harnessv1.DescribeWorkspaceResponse{}, nil
		}
		c.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	ctx := b.asToken("a", "2,100")
	hands := map[string]*hand{}
	for _, run := range []string{"r1", "r2", "r3", "r4"} {
		_, err := b.client.StartRun(b.asToken("a", "9,100"), b.start(run, "do it"))
		b.must(err)
		hands[run] = b.openRun(run)
		hands[run].snapshot.StartedBy = b.named("a")
	}
	b.must(b.send(ctx, "r1", "to a run at work"))
	hands["r4"].park("approval", approvalCall("c1"))
	for _, run := range []string{"r1", "r2", "r3"} {
		hands[run].end(harnessv1.RunStatus_RUN_STATUS_DONE)
	}
	b.eventually("no run is at work", func() bool { // a start that is admitted fails later
		_, err := b.client.StartRun(b.asToken("a", "1,100"), &harnessv1.StartRunRequest{Namespace: b.namespace, Spec: &harnessv1.RunSpec{
			Goal: content.Inline("x"), Workspace: "/none", Agent: &harnessv1.AgentSpec{Model: "script:x"},
		}})
		return status.Code(err) == codes.InvalidArgument
	})
	approve := func() error {
		_, err := b.client.SendInput(ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r4", Input: &harnessv1.SendInputRequest_Approval{
			Approval: &harnessv1.Approval{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
		}})
		return err
	}
	full := func(last string) {
		t.Helper()
		b.exceeds(b.send(ctx, last, "more"), "runs", "2")
		b.exceeds(approve(), "runs", "2")
		_, err := b.client.StartRun(ctx, b.start("", "do it"))
		b.exceeds(err, "runs", "2")
	}
	b.must(b.send(ctx, "r1", "more"))
	b.must(b.send(ctx, "r2", "more"))
	full("r3")
	b.must(b.send(ctx, "r1", "even more"))                                // it is at work already
	b.must(b.send(b.asToken("b", "9,100"), "r1", "from another"))         // whose quota is greater
	b.exceeds(b.send(b.asToken("b", "1,100"), "r3", "more"), "runs", "1") // the runs count for the token that has started them
	b.must(b.send(b.ctx, "r2", "from a person"))                          // without a quota
	hands["r1"].resume().end(harnessv1.RunStatus_RUN_STATUS_DONE)         // it has followed
	b.eventually("the list has the end of r1", func() bool { return b.send(ctx, "r3", "more") == nil })
	full("r1")
	hands["r3"].resume().end(harnessv1.RunStatus_RUN_STATUS_DONE)
	answer := func() error {
		_, err := b.client.SendInput(ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1", Input: &harnessv1.SendInputRequest_ToolAnswer{
			ToolAnswer: &harnessv1.ToolAnswer{CallId: "none", Result: content.Inline("x")},
		}})
		return err
	}
	b.eventually("the list has the end of r3", func() bool { return status.Code(answer()) == codes.FailedPrecondition })
	b.must(b.send(ctx, "r3", "more")) // the refused answer took no place
	full("r1")
	later.Store(int64(time.Minute))
	b.must(b.send(ctx, "r1", "after a minute in which nothing followed"))

	hands["r4"].step("repair", func(s *harnessv1.Step) {
		s.Snapshot.Status, s.Snapshot.ConversationBytes = harnessv1.RunStatus_RUN_STATUS_RUNNING, 50
	})
	b.eventually("the list has the bytes", func() bool { return b.send(b.asToken("a", "9,50"), "r4", "more") != nil })
	b.exceeds(b.send(b.asToken("a", "9,50"), "r4", "more"), "bytes", "50")
	_, err := b.client.StartRun(b.asToken("a", "9,50"), b.start("", "do it"))
	b.exceeds(err, "bytes", "50")
	b.must(b.send(b.asToken("a", "9,51"), "r4", "more"))
}
