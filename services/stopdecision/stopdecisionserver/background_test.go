package stopdecisionserver_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestBackgroundCommandsAreDeadBeforeTheRunEnds: the decision retries until the tool host
// confirms it.
func TestBackgroundCommandsAreDeadBeforeTheRunEnds(t *testing.T) {
	t.Parallel()
	var cancels atomic.Int32
	b := newBed(t, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if strings.HasSuffix(info.FullMethod, "/CancelTools") && cancels.Add(1) < 3 {
			return nil, status.Error(codes.Unavailable, "not yet")
		}
		return handler(ctx, req)
	})
	started, err := b.host.ExecuteTool(b.Context(), &harnessv1.ExecuteToolRequest{
		Namespace: b.Run.Namespace, RunId: b.Run.ID, FirstSequence: 1, Workspace: b.workspace, CallId: "c",
		Tool: "run_command", Arguments: `{"command":"sleep 3600","background":true}`,
	})
	if err != nil || started.GetBackground() == nil {
		t.Fatal(started, err)
	}
	s := b.state()
	runstate.AddBackground(s, started.GetBackground())
	b.Put(step(s))
	b.Start(b.server.Run)
	end := b.NextStep()
	if end.GetTo() != runlog.End || len(end.GetSnapshot().GetBackgroundCommands()) > 0 || cancels.Load() != 3 {
		t.Errorf("%d cancels, then %v", cancels.Load(), end)
	}
	if o := observed(end, runstate.KeyBackground).GetBackground().GetCommands(); len(o) != 1 || o[0].GetEnd() != "killed" {
		t.Errorf("observed %v", o)
	}
	now, err := b.host.InspectWorkspace(b.Context(), &harnessv1.InspectWorkspaceRequest{
		Namespace: b.Run.Namespace, RunId: b.Run.ID, FirstSequence: 1, Workspace: b.workspace, InstructionsOnly: true,
		Background: []*harnessv1.BackgroundCommand{started.GetBackground()},
	})
	if err != nil || now.GetBackground()[0].GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		t.Errorf("got %v, %v", now, err)
	}
}
