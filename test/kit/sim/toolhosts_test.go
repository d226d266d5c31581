package sim_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// checks makes a process call a tool host. A run without a worker keeps the world going
// meanwhile.
func checks(t *testing.T, cfg sim.Config, ask func(ctx context.Context, hosts harnessv1.ToolHostServiceClient)) {
	t.Helper()
	cfg.Executors = []string{"idle"}
	var asked atomic.Bool
	sim.Try(t, cfg, func(w *sim.World) {
		w.ToolHost("tools")
		w.StartRun(runlog.Run{Namespace: "default", ID: "r"}, &harnessv1.Step{
			To: "idle", Snapshot: &harnessv1.Snapshot{}, Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{}},
		})
		w.Start("asker", func(ctx context.Context, p *sim.Process) error {
			if ask(ctx, p.ToolHosts()); ctx.Err() == nil {
				asked.Store(true)
			}
			<-ctx.Done()
			return nil
		})
	})
	if !asked.Load() {
		t.Error("the process never came to its end")
	}
}

func TestCheckRunsOnce(t *testing.T) {
	for seed := range uint64(20) {
		checks(t, sim.Config{Seed: seed}, func(ctx context.Context, hosts harnessv1.ToolHostServiceClient) {
			req := &harnessv1.CheckCommandRequest{Namespace: "default", RunId: "r", Key: "k", Command: "true"}
			for range 2 {
				resp, err := hosts.CheckCommand(ctx, req)
				if err != nil || resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || resp.GetExitCode() != 0 {
					t.Errorf("seed %d: %v, %v", seed, resp, err)
				}
			}
			of := func(id string) *harnessv1.CancelToolsRequest {
				return &harnessv1.CancelToolsRequest{Namespace: "default", RunId: "r", CallIds: []string{id}}
			}
			if resp, err := hosts.CancelTools(ctx, of("k")); err != nil || !slices.Equal(resp.GetFinished(), []string{"k"}) {
				t.Errorf("seed %d: %v, %v", seed, resp, err)
			}
			if _, err := hosts.CancelTools(ctx, of("other")); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			req.Key = "other"
			if resp, err := hosts.CheckCommand(ctx, req); err != nil || resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
				t.Errorf("seed %d: %v, %v", seed, resp, err)
			}
			if resp, err := hosts.CheckFile(ctx, &harnessv1.CheckFileRequest{Path: "a"}); err != nil || resp.GetExists() || resp.GetWhy() == "" {
				t.Errorf("seed %d: %v, %v", seed, resp, err)
			}
			if resp, err := hosts.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{RunId: "r"}); err != nil || resp.GetFilesChanged() != 0 {
				t.Errorf("seed %d: %v, %v", seed, resp, err)
			}
		})
	}
}

func TestCheckDiesWithItsHost(t *testing.T) {
	var lost, unknown atomic.Int64
	for seed := range uint64(60) {
		// The calling process may die too; it then starts again.
		cfg := sim.Config{Seed: seed, Rates: sim.Rates{CallLost: 3000, CrashBefore: 300}}
		checks(t, cfg, func(ctx context.Context, hosts harnessv1.ToolHostServiceClient) {
			for n := range 10 {
				req := &harnessv1.CheckCommandRequest{Namespace: "default", RunId: "r", Key: fmt.Sprint(n), Command: "true"}
				for ctx.Err() == nil {
					patient, leave := context.WithTimeout(ctx, 10*time.Second)
					resp, err := hosts.CheckCommand(patient, req)
					leave()
					if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
						lost.Add(1)
						continue
					}
					if resp.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
						unknown.Add(1)
					}
					break
				}
			}
		})
	}
	if lost.Load() == 0 || unknown.Load() == 0 {
		t.Errorf("%d answers were lost, %d outcomes unknown", lost.Load(), unknown.Load())
	}
}
