package mesh

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// death is one at the nth time that a process comes to a point.
type death struct {
	point string
	n     int
}

// summaryDeaths are the deaths on the way of a summary, of a worker and of those that replace it, for one run each. The run
// requests its first summary in the ninth step of compaction, applies it in the tenth, and requests the second
// one in the seventeenth. With more rounds than one, each death has a separate run.
func summaryDeaths(role string) (chains [][]death) {
	if *rounds == 1 && role == workflow.Compaction {
		return [][]death{{{"received", 9}, {"request_stored", 1}, {"job_ended", 1}, {"executed", 8}, {"committed", 1}, {"acked", 1}, {"job_created", 1}}}
	}
	var chain []death
	for _, point := range failpoint.Points(role) {
		times := []int{1, 2, 3}
		if role == workflow.Compaction && slices.Contains(failpoint.Points(workflow.Turn), point) {
			times = []int{9, 10, 17} // each step comes to it
		}
		for _, n := range times[:min(*rounds, len(times))] {
			chain = append(chain, death{point, n})
			chains = append(chains, []death{{point, n}})
		}
	}
	if *rounds == 1 {
		return [][]death{chain}
	}
	return chains
}

// TestSystemSummariesSurviveKills kills the workers of compaction and inference at each point on
// the way of a summary. The run's log is that of a run without kills, and the model is
// called once for each summary, unless the worker died between its answer and the storing of
// the result.
func TestSystemSummariesSurviveKills(t *testing.T) {
	t.Parallel()
	for _, role := range []string{workflow.Compaction, workflow.Inference} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			m, s := startSummarizing(t, meshtest.Config{})
			want := compactedAlone(t, m, s)
			killed := map[string]bool{}
			for i, chain := range summaryDeaths(role) {
				killSummary(t, m, s, want, role, fmt.Sprintf("%s-%d", role, i), chain)
				for _, death := range chain {
					killed[death.point] = true
				}
				if t.Failed() {
					return
				}
			}
			for _, point := range failpoint.Points(role) {
				if !killed[point] {
					t.Errorf("%s was not killed at %s", role, point)
				}
			}
		})
	}
}

// killSummary takes a run through the scenario while a role dies.
func killSummary(t *testing.T, m *meshtest.Mesh, s *summaryModel, want, role, id string, chain []death) {
	t.Helper()
	d := &deaths{t: t, m: m, role: role, kills: len(chain), at: func(n int) int { return chain[n].n }}
	repeats := 0
	for _, death := range chain {
		d.points = append(d.points, death.point)
		if role == workflow.Inference && death.point == "answered" {
			repeats++
		}
	}
	s.reset(nil)
	defer d.start()()
	m.AwaitAlive(role)
	again(t, m, want, id)
	s.called(t, fmt.Sprint(role, chain), 1, repeats)
	waittest.Eventually(t, fmt.Sprintf("%s died at all of %v", role, chain), func() bool { return d.left() == 0 })
}

// TestSystemSummarizerIsCalledAgainAfterADeath kills the inference worker while the model answers,
// once for each summary: its answer is lost, and the next one counts.
func TestSystemSummarizerIsCalledAgainAfterADeath(t *testing.T) {
	t.Parallel()
	m, s := startSummarizing(t, meshtest.Config{})
	want := compactedAlone(t, m, s)
	m.Respawn(workflow.Inference, nil)
	s.reset(func(int) {
		m.AwaitAlive(workflow.Inference)
		m.Process(workflow.Inference).Kill()
	})
	again(t, m, want, "killed")
	s.called(t, "killed", 1, summaries)
}

// calm is a takeover time at which a worker on a busy machine still sends its heartbeats in
// time: a job that is redelivered while its model answers costs another call.
const calm = 5 * time.Second

// TestSystemTwoInferenceWorkers: several runs at the same time, with two workers for their jobs,
// need one call of the model for each summary.
func TestSystemTwoInferenceWorkers(t *testing.T) {
	t.Parallel()
	m, s := startSummarizing(t, meshtest.Config{Takeover: calm})
	want := compactedAlone(t, m, s)
	m.Start("inference-2")
	m.AwaitReady("inference-2")
	s.reset(nil)
	const lanes = 4
	var running sync.WaitGroup
	for lane := range lanes {
		running.Go(func() { again(t, m, want, fmt.Sprintf("lane-%d", lane)) })
	}
	running.Wait()
	s.called(t, "two workers", lanes, 0)
}

// TestSystemRedeliveredJobs stops a worker that has a job, until another worker has carried it out,
// and continues it then: before the call of the model, and after the result is stored. Both
// make one call together.
func TestSystemRedeliveredJobs(t *testing.T) {
	t.Parallel()
	m, s := startSummarizing(t, meshtest.Config{Takeover: calm})
	want := compactedAlone(t, m, s)
	for _, point := range []string{"received", "stored"} {
		name := workflow.Inference + "." + point
		m.Process(workflow.Inference).Kill()
		stopped := m.Start(workflow.Inference, meshtest.Arm(name+"=stop"))
		m.AwaitReady(workflow.Inference)
		s.reset(nil)
		var helping sync.WaitGroup
		helping.Go(func() {
			if _, ok := stopped.Line("failpoint " + name); !ok {
				t.Errorf("the worker ended:\n%s", stopped.Stderr())
			}
			m.Start("inference-2")
		})
		d, entries := compacted.through(t.Context(), t, m, "redelivered-"+point)
		helping.Wait()
		stopped.Signal(syscall.SIGCONT)
		d.ctx = t.Context()
		waittest.Eventually(t, "no job is left", func() bool { return d.jobs() == 0 })
		d.wellSummarized(entries)
		same(t, want, d.compactedLog(entries))
		s.called(t, name, 1, 0)
		m.Process("inference-2").Kill()
	}
}

// TestSystemNATSIsKilledDuringAJob kills the bus while a job waits for a worker, and while the
// model answers. The job is carried out once.
func TestSystemNATSIsKilledDuringAJob(t *testing.T) {
	t.Parallel()
	m, s := startSummarizing(t, meshtest.Config{})
	want := compactedAlone(t, m, s)
	restart := func() {
		m.Bus.Kill(0)
		m.Bus.Restart(0)
		m.Bus.AwaitReady(0)
	}
	s.reset(func(n int) {
		if n == 2 {
			restart()
		}
	})
	m.Process(workflow.Inference).Kill()
	var troubling sync.WaitGroup
	first := make(chan struct{})
	troubling.Go(func() {
		<-first
		restart()
		m.Start(workflow.Inference)
	})
	own := compacted
	var once sync.Once
	own.drive = func(_ *driver, e *harnessv1.Event) {
		if e.GetCompactionStarted().GetJob() != "" {
			once.Do(func() { close(first) })
		}
	}
	d, entries := own.through(t.Context(), t, m, "pending")
	troubling.Wait()
	d.ctx = t.Context()
	waittest.Eventually(t, "no job is left", func() bool { return d.jobs() == 0 })
	d.wellSummarized(entries)
	same(t, want, d.compactedLog(entries))
	s.called(t, "the bus was killed", 1, 0)
}
