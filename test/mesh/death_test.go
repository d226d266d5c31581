package mesh

import (
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// startSlowModel starts a run whose model takes a time for its first answer.
func startSlowModel(t *testing.T, m *meshtest.Mesh, takes time.Duration) runlog.Run {
	t.Helper()
	path := m.Write("thinking.yaml", "turns:\n  - {delay: "+takes.String()+", text: Thought., calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	run := runlog.Run{Namespace: "default", ID: "thinks"}
	_, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Think."), Workspace: t.TempDir(), Agent: &harnessv1.AgentSpec{Model: "script:" + path},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// worker returns the process that has claimed the turn of a run for the nth time.
func worker(t *testing.T, m *meshtest.Mesh, run runlog.Run, n int) *meshtest.Process {
	t.Helper()
	var all []runlog.Entry
	waittest.Eventually(t, "the turn is claimed", func() bool {
		all = claims(m.Entries(run))
		return len(all) >= n
	})
	return m.Writer(all[n-1])
}

// restarted starts the process of a turn worker again, whose work ends with it.
func restarted(m *meshtest.Mesh, old *meshtest.Process) {
	name := "turn"
	if m.Process(name) != old {
		name = "turn-2"
	}
	m.Start(name, meshtest.Args("--drain=10ms"))
	m.AwaitReady(name)
}

// TestSystemStepThatKillsWorkersIsPutAside: after three workers have died while they worked on
// a step its run has failed, and a resume tries the step again.
func TestSystemStepThatKillsWorkersIsPutAside(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second, Workers: 2})
	run := startSlowModel(t, m, time.Hour)
	for n := range 3 {
		w := worker(t, m, run, n+1)
		w.Kill()
		restarted(m, w)
	}
	entries := m.Ended(run, 0)
	result := entries[len(entries)-1].Record.GetStep().GetResult()
	if result.GetStatus() != harnessv1.RunStatus_RUN_STATUS_FAILED || result.GetReason().GetKind() != "poison" {
		t.Fatalf("the run ended as %v", result)
	}
	t.Log(result.GetReason().GetMessage())
	if _, err := m.Client().ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: "again"}); err != nil {
		t.Fatal(err)
	}
	worker(t, m, run, 4)
	if _, err := m.Client().CancelRun(t.Context(), &harnessv1.CancelRunRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: "enough"}); err != nil {
		t.Fatal(err)
	}
	m.Ended(run, len(entries))
}

// TestSystemRestartsAreNoDeaths: workers that are stopped in order, and restarts of NATS, never
// put a step aside.
func TestSystemRestartsAreNoDeaths(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second, Workers: 2})
	for _, name := range []string{"turn", "turn-2"} {
		m.Process(name).Kill()
		m.Start(name, meshtest.Args("--drain=10ms"))
		m.AwaitReady(name)
	}
	run := startSlowModel(t, m, 6*time.Second)
	for n := range 4 {
		w := worker(t, m, run, n+1)
		if code := w.Terminate(); code != 0 {
			t.Errorf("a worker left with %d", code)
		}
		restarted(m, w)
	}
	worker(t, m, run, 5)
	for range 3 {
		m.Bus.Kill(0)
		m.Bus.Restart(0)
		m.Bus.AwaitReady(0)
		for _, name := range []string{"turn", "turn-2"} {
			m.AwaitReady(name)
		}
	}
	entries := m.Ended(run, 0)
	if result := entries[len(entries)-1].Record.GetStep().GetResult(); !result.GetAccepted() {
		t.Errorf("the run ended as %v", result)
	}
	for _, e := range entries {
		if taken := e.Record.GetJournal().GetStepTaken(); taken.GetDeaths() > 0 {
			t.Errorf("counted %v", taken)
		}
	}
}
