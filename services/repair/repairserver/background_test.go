package repairserver_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair/repairserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
)

// TestBackgroundCommandsOfADeletedRunAreKilled: it waited for an answer, so they were alive.
func TestBackgroundCommandsOfADeletedRunAreKilled(t *testing.T) {
	t.Parallel()
	host, workspace := steptest.ToolHost(t, nil), t.TempDir()
	b := newBed(t, repairserver.Config{ToolHost: host})
	run := runlog.Run{Namespace: "n", ID: "r"}
	call := func(id, name, arguments string) *harnessv1.ExecuteToolResponse {
		resp, err := host.ExecuteTool(b.ctx, &harnessv1.ExecuteToolRequest{
			Namespace: run.Namespace, RunId: run.ID, FirstSequence: 1, CallId: id, Tool: name, Arguments: arguments, Workspace: workspace,
		})
		b.must(err)
		return resp
	}
	started := call("c", "run_command", `{"command":"sleep 3600","background":true}`).GetBackground()
	b.append(run, &harnessv1.Step{From: "gateway", To: runlog.End, Snapshot: &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_CANCELLED, Phase: harnessv1.Phase_PHASE_DONE, FirstSequence: 1, ExpireTime: timestamppb.Now(),
		BackgroundCommands: []*harnessv1.BackgroundCommand{{CallId: started.GetCallId(), LedgerId: started.GetLedgerId()}},
	}})
	if resp := call("o", "command_output", `{"id":"bg1","wait_seconds":60}`); !strings.Contains(resp.GetResult(), "[killed;") {
		t.Errorf("got %q", resp.GetResult())
	}
}
