package turnserver_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestHostsOfACallAreApprovedForItAlone: nothing but an approval of the call covers them, and
// the tool host gets them with this call only.
func TestHostsOfACallAreApprovedForItAlone(t *testing.T) {
	t.Parallel()
	confinements := make(chan *harnessv1.Confinement, 2)
	b := newBedWith(t, func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if execute, ok := req.(*harnessv1.ExecuteToolRequest); ok {
			confinements <- execute.GetConfinement()
			return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "ran"}, nil
		}
		resp, err := handler(ctx, req)
		if described, ok := resp.(*harnessv1.DescribeHostResponse); ok {
			described.Sandbox = &harnessv1.SandboxSupport{Level: sandbox.Full}
		}
		return resp, err
	}, nil, calls(
		modeltest.Call{ID: "asks", Name: "run_command", Arguments: `{"command":"curl a.org","hosts":["a.org","known.org"]}`},
		modeltest.Call{ID: "runs", Name: "run_command", Arguments: `{"command":"curl known.org","hosts":["known.org"]}`},
	))
	s := b.state() // --yolo
	s.GrantedTools = []string{"run_command"}
	s.Config.Sandbox = &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{
		Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, Hosts: []string{"known.org"},
	}}
	b.run(s)
	_, outcome := b.records()
	if c := <-confinements; len(c.GetHosts()) != 0 || c.GetLevel() != sandbox.Full {
		t.Errorf("the call within the network of the run reaches %v", c)
	}
	pending := outcome.GetStep().GetSnapshot().GetPendingToolCalls()
	if len(pending) != 1 || pending[0].GetCallId() != "asks" || !pending[0].GetOnlyOnce() || !slices.Equal(pending[0].GetSandboxHosts(), []string{"a.org"}) || !strings.Contains(pending[0].GetWhy(), "a.org") {
		t.Fatalf("pending: %v", pending)
	}
	approved := newBedWith(t, func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if execute, ok := req.(*harnessv1.ExecuteToolRequest); ok {
			confinements <- execute.GetConfinement()
		}
		return handler(ctx, req)
	}, nil)
	s = approved.state()
	s.PendingToolCalls, s.Turn = pending, outcome.GetStep().GetSnapshot().GetTurn()
	s.PendingToolCalls[0].Class, s.PendingToolCalls[0].Arguments = harnessv1.PendingClass_PENDING_CLASS_APPROVED, content.Inline(`{"command":"true"}`)
	approved.run(s)
	approved.records()
	if c := <-confinements; !slices.Equal(c.GetHosts(), []string{"a.org"}) || c.GetLevel() != sandbox.Full {
		t.Errorf("the approved call reaches %v", c)
	}
}
