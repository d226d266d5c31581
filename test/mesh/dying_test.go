package mesh

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

var (
	dyingRuns    = flag.Int("dyingruns", 6, "runs of TestSystemRunsNextToDyingWorkers, at the same time")
	dyingWorkers = flag.Int("dyingworkers", 2, "its turn workers")
	dyingTime    = flag.Duration("dyingtime", 6*time.Second, "how long it kills workers")
	dyingEvery   = flag.Duration("dyingevery", 2*time.Second, "the time between two deaths")
)

// TestSystemRunsNextToDyingWorkers: turn workers are killed one after the other, next to a long command, a
// model that thinks for long and many runs of short turns. No run fails, none is parked, and no
// command has its effect twice.
func TestSystemRunsNextToDyingWorkers(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second, Workers: *dyingWorkers})
	workers := []string{"turn"}
	for n := 2; n <= *dyingWorkers; n++ {
		workers = append(workers, fmt.Sprint("turn-", n))
	}
	for _, name := range workers {
		m.Respawn(name, nil)
	}
	const pause = 500 * time.Millisecond // of the model of a short turn
	turns := int(*dyingTime / pause)
	var short strings.Builder
	short.WriteString("turns:\n")
	for n := range turns {
		fmt.Fprintf(&short, "  - {delay: %s, calls: [{name: run_command, arguments: {command: 'echo id-%d >> out'}}]}\n", pause, n)
	}
	const done = "  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n"
	scripts := map[string]string{
		"short":   short.String() + done,
		"command": fmt.Sprintf("turns:\n  - {calls: [{name: run_command, arguments: {command: 'sleep %d; echo id-0 >> out', timeout_seconds: 3600}}]}\n%s", int(2*dyingTime.Seconds()), done),
		"model":   fmt.Sprintf("turns:\n  - {delay: %s, calls: [{name: run_command, arguments: {command: 'echo id-0 >> out'}}]}\n%s", 2**dyingTime, done),
	}
	type work struct {
		id, dir string
		result  *harnessv1.HarnessResult
		parks   int
	}
	var all []*work
	start := func(id, kind string) {
		w := &work{id: id, dir: t.TempDir()}
		_, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: id, RequestId: id, Spec: &harnessv1.RunSpec{
			Goal: content.Inline("Do what the script does."), Workspace: w.dir,
			Agent: &harnessv1.AgentSpec{Model: "script:" + m.Write(kind+".yaml", scripts[kind])},
			Config: &harnessv1.LoopConfig{
				Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)}, Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(uint32(turns + 10))},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	start("command", "command")
	start("model", "model")
	for n := range *dyingRuns {
		start(fmt.Sprint("short-", n), "short")
	}
	var following sync.WaitGroup
	for _, w := range all {
		following.Go(func() {
			var err error
			w.result, err = waittest.Watch(t.Context(), m.Client(), "default", w.id, 0, harnessv1.WatchUntil_WATCH_UNTIL_END, func(e *harnessv1.Event) {
				if e.GetSessionPause() != nil {
					w.parks++
				}
			})
			if err != nil {
				t.Errorf("%s: %v", w.id, err)
			}
		})
	}
	deaths := 0
	tick, over := time.NewTicker(*dyingEvery), time.After(*dyingTime)
	defer tick.Stop()
	for dying := true; dying; {
		select {
		case <-tick.C:
			name := workers[rand.IntN(len(workers))]
			m.AwaitAlive(name)
			m.Process(name).Kill()
			deaths++
		case <-over:
			dying = false
		}
	}
	following.Wait()
	effects, unknown := 0, 0
	for _, w := range all {
		if w.result.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || w.parks > 0 {
			t.Errorf("%s: %v after %d parks", w.id, w.result, w.parks)
		}
		out, err := os.ReadFile(filepath.Join(w.dir, "out"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		count := map[string]int{}
		for id := range strings.FieldsSeq(string(out)) {
			effects++
			if count[id]++; count[id] > 1 {
				t.Errorf("%s: the effect of %s happened %d times", w.id, id, count[id])
			}
		}
		entries := m.Entries(runlog.Run{Namespace: "default", ID: w.id})
		for _, outcome := range meshtest.Outcomes(entries) {
			if outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
				unknown++
			}
		}
	}
	want := len(all) - *dyingRuns + *dyingRuns*turns
	if effects+unknown < want {
		t.Errorf("%d effects and %d unknown calls, want %d", effects, unknown, want)
	}
	t.Logf("%d runs, %d deaths of workers: %d effects, each once, %d calls unknown", len(all), deaths, effects, unknown)
}
