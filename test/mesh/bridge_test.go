package mesh

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// foreign is an executor outside of the mesh.
type foreign struct {
	harnessv1.UnimplementedExecutorServiceServer
	execute func(context.Context, *harnessv1.StepInput) (*harnessv1.Outcome, error)
}

func (f foreign) Execute(ctx context.Context, req *harnessv1.ExecuteRequest) (*harnessv1.ExecuteResponse, error) {
	outcome, err := f.execute(ctx, req.GetInput())
	return &harnessv1.ExecuteResponse{Output: &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: outcome}}}, err
}

// serveForeign serves an executor at addr until stop.
func serveForeign(t *testing.T, addr string, execute func(context.Context, *harnessv1.StepInput) (*harnessv1.Outcome, error)) (at string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	harnessv1.RegisterExecutorServiceServer(s, foreign{execute: execute})
	healthv1.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String(), s.Stop
}

const twoTurns = `turns:
  - {text: "Looking.", calls: [{name: list_directory, arguments: {path: .}}]}
  - {text: "Done.", calls: [{name: work_complete, arguments: {summary: done}}]}
`

// startRun starts a run whose executor NAME follows its turns.
func startRun(t *testing.T, m *meshtest.Mesh, run, name, script string) runlog.Run {
	t.Helper()
	_, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Look."), Workspace: t.TempDir(), Workflow: []string{"repair", "turn", name, "stopdecision"},
		Agent: &harnessv1.AgentSpec{Model: "script:" + m.Write(run+".yaml", script)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return runlog.Run{Namespace: "default", ID: run}
}

// TestSystemExecutorThroughBridge checks that an executor that implements only its service
// works between turn and stopdecision, disconnects, returns, and may misbehave.
func TestSystemExecutorThroughBridge(t *testing.T) {
	t.Parallel()
	outer := t // the server outlives the subtest
	m := meshtest.Start(t, bin, meshtest.Config{Partitions: 2})
	var calls atomic.Int32
	speak := func(_ context.Context, in *harnessv1.StepInput) (*harnessv1.Outcome, error) {
		calls.Add(1)
		return &harnessv1.Outcome{Appended: []*harnessv1.Message{{Content: content.Inline("Turn " + in.GetStep().GetTurnComplete().String() + " was seen.")}}}, nil
	}
	at, stop := serveForeign(t, "127.0.0.1:0", speak)
	m.Start("bridge", meshtest.Args("--executor", "critic", "--target", at))
	m.AwaitReady("bridge")

	t.Run("it is called each turn and heard", func(t *testing.T) {
		entries := m.Ended(startRun(t, m, "heard", "critic", twoTurns), 0)
		said, from := 0, 0
		for _, e := range entries {
			if e.Record.GetStep().GetFrom() == "critic" {
				from++
				for _, message := range e.Record.GetAppended() {
					if strings.Contains(message.GetContent().GetInline(), "was seen") {
						said++
					}
				}
			}
		}
		if calls.Load() != 2 || from != 2 || said != 2 {
			t.Errorf("called %d times, %d steps, %d messages", calls.Load(), from, said)
		}
		if err := meshtest.Check(entries); err != nil {
			t.Error(err)
		}
	})
	t.Run("while it is away its runs wait", func(t *testing.T) {
		stop()
		waittest.Eventually(t, "the bridge reports what it waits for", func() bool {
			return strings.Contains(m.Process("bridge").Stderr(), "waiting role=bridge") && strings.Contains(m.Process("bridge").Stderr(), "executor critic at "+at)
		})
		run := startRun(t, m, "waited", "critic", twoTurns)
		waittest.Eventually(t, "the step has come to the bridge", func() bool {
			e := m.Entries(run)
			return len(e) > 0 && e[len(e)-1].Record.GetStep().GetTo() == "critic"
		})
		// It does not prevent the run from being stopped.
		stopped := startRun(t, m, "stopped", "critic", twoTurns)
		waittest.Eventually(t, "that step has come to the bridge too", func() bool {
			e := m.Entries(stopped)
			return len(e) > 0 && e[len(e)-1].Record.GetStep().GetTo() == "critic"
		})
		if _, err := m.Client().CancelRun(t.Context(), &harnessv1.CancelRunRequest{RunId: stopped.ID}); err != nil {
			t.Fatal(err)
		}
		if entries := m.Ended(stopped, 0); entries[len(entries)-1].Record.GetStep().GetResult().GetStatus() != harnessv1.RunStatus_RUN_STATUS_CANCELLED {
			t.Errorf("ended as %v", entries[len(entries)-1].Record.GetStep().GetResult())
		}
		serveForeign(outer, at, speak)
		if entries := m.Ended(run, 0); entries[len(entries)-1].Record.GetStep().GetResult().GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE {
			t.Errorf("ended as %v", entries[len(entries)-1].Record.GetStep().GetResult())
		}
	})
	t.Run("a change of a field that may not change fails the run", func(t *testing.T) {
		bad, _ := serveForeign(outer, "127.0.0.1:0", func(_ context.Context, in *harnessv1.StepInput) (*harnessv1.Outcome, error) {
			in.GetStep().GetSnapshot().MaxTurns = 9_999
			return &harnessv1.Outcome{Step: &harnessv1.Step{Snapshot: in.GetStep().GetSnapshot()}}, nil
		})
		m.Start("bridge-2", meshtest.Args("--executor", "greedy", "--target", bad))
		m.AwaitReady("bridge-2")
		entries := m.Ended(startRun(t, m, "greedy", "greedy", twoTurns), 0)
		result := entries[len(entries)-1].Record.GetStep().GetResult()
		if result.GetReason().GetKind() != "poison" || !strings.Contains(result.GetReason().GetMessage(), "snapshot.max_turns") {
			t.Errorf("ended as %v", result)
		}
	})
	t.Run("an interrupt does not wait for it", func(t *testing.T) {
		hangs := make(chan struct{}, 1)
		hang, _ := serveForeign(outer, "127.0.0.1:0", func(ctx context.Context, _ *harnessv1.StepInput) (*harnessv1.Outcome, error) {
			hangs <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		m.Start("bridge-3", meshtest.Args("--executor", "slow", "--target", hang))
		m.AwaitReady("bridge-3")
		run := startRun(t, m, "interrupted", "slow", twoTurns)
		select {
		case <-hangs:
		case <-time.After(waittest.Patience):
			t.Fatal("it was never called")
		}
		if _, err := m.Client().InterruptRun(t.Context(), &harnessv1.InterruptRunRequest{RunId: run.ID}); err != nil {
			t.Fatal(err)
		}
		waittest.Eventually(t, "the run is parked", func() bool {
			e := m.Entries(run)
			return e[len(e)-1].Record.GetStep().GetParked().GetReason().GetKind() == "interrupted"
		})
	})
	if out := m.Harness("doctor", "--nats", m.Bus.URL()); strings.Count(out, "\nbridge ") != 3 {
		t.Errorf("doctor does not know the bridges:\n%s", out)
	}
}

// TestSystemBridgeIsRefused checks that each mistake gives one line with the remedy.
func TestSystemBridgeIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no executor":   {[]string{"--roles", "all,bridge"}, "--executor NAME and --target HOST:PORT"},
		"no bridge":     {[]string{"--roles", "all", "--executor", "x", "--target", "127.0.0.1:1"}, "add it to --roles"},
		"a rest":        {[]string{"--roles", "all,bridge", "--executor", "park", "--target", "127.0.0.1:1"}, "reserved for runs that are parked or ended"},
		"both":          {[]string{"--roles", "all,bridge", "--executor", "compaction", "--target", "127.0.0.1:1"}, "both would consume its steps"},
		"no port":       {[]string{"--roles", "all,bridge", "--executor", "x", "--target", "localhost"}, "is not HOST:PORT"},
		"a role's name": {[]string{"--roles", "all,bridge", "--executor", "bridge", "--target", "127.0.0.1:1"}, "is a role"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, []string{c.want}, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, c.args...)...)
		})
	}
}
