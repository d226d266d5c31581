package mesh

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
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

// rest waits until a run is parked or has ended, and returns its last step.
func rest(t *testing.T, m *meshtest.Mesh, run runlog.Run) *harnessv1.Step {
	t.Helper()
	var step *harnessv1.Step
	waittest.Eventually(t, "the run is parked or has ended", func() bool {
		for _, e := range m.Entries(run) {
			if s := e.Record.GetStep(); s != nil {
				step = s
			}
		}
		return step != nil && runlog.IsRest(step.GetTo())
	})
	return step
}

// nextRest is rest for the one after a step.
func nextRest(t *testing.T, m *meshtest.Mesh, run runlog.Run, before *harnessv1.Step) *harnessv1.Step {
	t.Helper()
	var step *harnessv1.Step
	waittest.Eventually(t, "the run is parked again", func() bool {
		step = rest(t, m, run)
		return step.GetSnapshot().GetParkVersion() != before.GetSnapshot().GetParkVersion()
	})
	return step
}

// counted returns the greatest number of deaths that a run's journal has counted at a step.
func counted(entries []runlog.Entry) (n uint32) {
	for _, e := range entries {
		n = max(n, e.Record.GetJournal().GetStepTaken().GetDeaths())
	}
	return n
}

// waitWords has the newest words about a step. It answers no question.
type waitWords struct {
	mu       sync.Mutex
	said     map[uint64]*harnessv1.StepWord // by delivery
	delivery uint64                         // the newest
	killed   []uint64
}

func (w *waitWords) Had(runlog.Run, uint64, uint64) bool                     { return false }
func (w *waitWords) LastWord(runlog.Run, uint64, uint64) *harnessv1.StepWord { return nil }

func (w *waitWords) Heard(_ runlog.Run, word *harnessv1.StepWord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[word.GetDelivery()], w.delivery = word, max(w.delivery, word.GetDelivery())
}

// waits reports whether a delivery whose worker was not killed yet waits.
func (w *waitWords) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said[w.delivery].GetWaits() && !slices.Contains(w.killed, w.delivery)
}

// kills notes that the worker of the newest delivery is killed.
func (w *waitWords) kills() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killed = append(w.killed, w.delivery)
}

// atWork is the number of killed workers whose last word was not that they wait.
func (w *waitWords) atWork() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.killed {
		if !w.said[d].GetWaits() {
			n++
		}
	}
	return n
}

// TestSystemStepThatKillsWorkersIsPutAside: after three workers have died of what a model answered,
// for which they had waited, its run is parked, and a resume tries the step again.
func TestSystemStepThatKillsWorkersIsPutAside(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second, Workers: 2})
	killers(t, m, "turn.answered=kill", 2)
	run := startSlowModel(t, m, 1500*time.Millisecond)
	step := rest(t, m, run)
	if parked := step.GetParked(); parked.GetReason().GetKind() != "poison" || parked.GetWakeAt() == nil {
		t.Fatalf("the run is at %v", step)
	}
	t.Log(step.GetParked().GetReason().GetMessage())
	if _, err := m.Client().ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: "again"}); err != nil {
		t.Fatal(err)
	}
	step = nextRest(t, m, run, step)
	if step.GetParked().GetReason().GetKind() != "poison" || step.GetSnapshot().GetPoisonParks() != 2 {
		t.Errorf("after a resume the run is at %v", step)
	}
}

// TestSystemWorkersThatDieDuringAWait: workers that are killed again and again while a run waits for
// a command, and for a model that thinks, leave no death. The command runs once.
func TestSystemWorkersThatDieDuringAWait(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second, Workers: 3})
	workspace := t.TempDir()
	path := m.Write("waits.yaml", `turns:
  - {delay: 4s, calls: [{name: run_command, arguments: {command: "echo x >> out; while [ ! -e go ]; do sleep 0.1; done"}}]}
  - {delay: 4s, calls: [{name: work_complete, arguments: {summary: done}}]}
`)
	run := runlog.Run{Namespace: "default", ID: "waits"}
	_, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Wait."), Workspace: workspace, Agent: &harnessv1.AgentSpec{Model: "script:" + path},
	}})
	if err != nil {
		t.Fatal(err)
	}
	listener := &waitWords{said: map[uint64]*harnessv1.StepWord{}}
	stop, err := m.Log().Testify("turn", listener)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	kill := func(says string) {
		var w *meshtest.Process
		waittest.Eventually(t, says, func() bool {
			if !listener.waits() {
				return false
			}
			all := claims(m.Entries(run))
			w = m.Writer(all[len(all)-1])
			w.Signal(syscall.SIGSTOP)
			m.Entries(run) // what it said before comes before this answer
			if listener.waits() {
				return true
			}
			w.Signal(syscall.SIGCONT) // a short wait, which was over
			return false
		})
		listener.kills()
		w.Kill()
		name := "turn"
		for _, other := range []string{"turn-2", "turn-3"} {
			if m.Process(other) == w {
				name = other
			}
		}
		m.Start(name, meshtest.Args("--drain=10ms"))
		m.AwaitReady(name)
	}
	for range 4 {
		kill("the worker reports that it waits for the model")
	}
	waittest.Eventually(t, "the command runs", func() bool { _, err := os.Stat(filepath.Join(workspace, "out")); return err == nil })
	for range 5 {
		kill("the worker reports that it waits for the command")
	}
	if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	entries := m.Ended(run, 0)
	if result := entries[len(entries)-1].Record.GetStep().GetResult(); !result.GetAccepted() {
		t.Errorf("the run ended as %v", result)
	}
	if n, most := counted(entries), listener.atWork(); int(n) > most {
		t.Errorf("%d deaths are counted, and %d workers were at work", n, most)
	}
	if out, err := os.ReadFile(filepath.Join(workspace, "out")); string(out) != "x\n" || err != nil {
		t.Errorf("the command printed %q, %v", out, err)
	}
}

const others = 7 // innocent runs next to a poisonous one

// TestSystemPoisonIsFoundAmongWaits: a run that kills each worker that reads its answer is parked after
// at most 3 + log2 n deaths, n the steps of its worker. Runs that wait in the same workers end as usual.
// A single worker gets its steps again at different times, so that fewer than half of them are put aside
// together: there may be as many deaths as steps.
func TestSystemPoisonIsFoundAmongWaits(t *testing.T) {
	t.Parallel()
	for workers, most := range map[int]int{1: 3 + others, 2: 3 + 3} {
		t.Run(fmt.Sprint("workers=", workers), func(t *testing.T) {
			t.Parallel()
			findPoison(t, workers, most)
		})
	}
}

func findPoison(t *testing.T, workers, most int) {
	t.Helper()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second, Workers: workers})
	died := killers(t, m, "turn.streaming=kill", workers)
	path := m.Write("patient.yaml", "turns:\n  - {delay: 5s, calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	var patient []runlog.Run
	for n := range others {
		run := runlog.Run{Namespace: "default", ID: fmt.Sprint("patient-", n)}
		_, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, Spec: &harnessv1.RunSpec{
			Goal: content.Inline("Wait."), Workspace: t.TempDir(), Agent: &harnessv1.AgentSpec{Model: "script:" + path},
		}})
		if err != nil {
			t.Fatal(err)
		}
		patient = append(patient, run)
	}
	poison := startSlowModel(t, m, time.Millisecond)
	step := rest(t, m, poison)
	killed := died()
	if step.GetParked().GetReason().GetKind() != "poison" || killed > most {
		t.Errorf("after %d deaths the run is at %v", killed, step)
	}
	for _, run := range patient {
		entries := m.Ended(run, 0)
		if result := entries[len(entries)-1].Record.GetStep().GetResult(); !result.GetAccepted() {
			t.Errorf("%s ended as %v", run, result)
		}
	}
	t.Logf("%d deaths", killed)
}

// killers replaces the one or two workers by those that die at a failpoint, and are restarted. died
// returns how many have died.
func killers(t *testing.T, m *meshtest.Mesh, failpoint string, workers int) (died func() int) {
	t.Helper()
	var all atomic.Int64
	for _, name := range []string{"turn", "turn-2"}[:workers] {
		old := m.Process(name)
		m.Respawn(name, func(int) []meshtest.Option {
			all.Add(1)
			return []meshtest.Option{meshtest.Arm(failpoint), meshtest.Args("--drain=10ms")}
		})
		old.Kill()
		waittest.Eventually(t, name+" is restarted", func() bool { return m.Process(name) != old })
		m.AwaitReady(name)
	}
	return func() int { return int(all.Load()) - workers }
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
