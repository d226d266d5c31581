package mesh

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// TestSystemRollingRestart restarts every process of a mesh in turn while runs are at work,
// as a rolling update does: SIGTERM, wait for the end, start, wait until ready. In the
// middle it also kills a turn worker. Every run must end properly, and none may stop
// for longer than the takeover time.
func TestSystemRollingRestart(t *testing.T) {
	t.Parallel()
	const (
		takeover = 2 * runlog.DefaultTakeover // a busy machine needs seconds to start a process
		fleet    = 8
		turns    = 60
	)
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: takeover, Workers: 2})
	for _, role := range []string{"repair", "compaction", "stopdecision"} {
		m.Start(role + "-2")
		m.AwaitReady(role + "-2")
	}
	var script strings.Builder
	script.WriteString("turns:\n")
	for i := range turns {
		fmt.Fprintf(&script, "  - {delay: 200ms, text: Step %d., calls: [{name: run_command, arguments: {command: 'echo %d >> out'}}]}\n", i, i)
	}
	script.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	path := m.Write("rolling.yaml", script.String())
	yes := true
	var runs []runlog.Run
	for i := range fleet {
		run := runlog.Run{Namespace: "default", ID: fmt.Sprintf("rolling-%02d", i)}
		_, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, Spec: &harnessv1.RunSpec{
			Goal: content.Inline("Count."), Workspace: t.TempDir(), Agent: &harnessv1.AgentSpec{Model: "script:" + path},
			Config: &harnessv1.LoopConfig{
				Stop:  &harnessv1.StopConfig{MaxTurns: new(uint32(turns * 2))},
				Tools: &harnessv1.ToolConfig{Yolo: &yes},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	under := func(when string) {
		for _, run := range runs {
			if e := m.Entries(run); e[len(e)-1].Record.GetStep().GetTo() == runlog.End {
				t.Fatalf("%s has ended %s: nothing is under load any more", run.ID, when)
			}
		}
	}
	restart := func(name string) {
		old := m.Process(name)
		if code := old.Terminate(); code != 0 {
			t.Errorf("%s left with %d:\n%s", name, code, old.Stderr())
		}
		m.Start(name)
		m.AwaitReady(name)
	}
	for _, name := range []string{"turn", "turn-2", "repair", "repair-2", "compaction", "compaction-2"} {
		restart(name)
	}
	m.Process("turn").Kill()
	m.Start("turn")
	m.AwaitReady("turn")
	for _, name := range []string{"stopdecision", "stopdecision-2", "gateway", "toolhost"} {
		restart(name)
	}
	under("before all was restarted")

	var longest time.Duration
	for _, run := range runs {
		entries := m.Ended(run, 0)
		if err := meshtest.Check(entries); err != nil {
			t.Errorf("%s: %v", run.ID, err)
		}
		result := entries[len(entries)-1].Record.GetStep().GetResult()
		if result.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || !result.GetAccepted() || result.GetTurnCount() != turns+1 {
			t.Errorf("%s ended as %v", run.ID, result)
		}
		for i := 1; i < len(entries); i++ {
			gap := entries[i].Record.GetCommitTime().AsTime().Sub(entries[i-1].Record.GetCommitTime().AsTime())
			longest = max(longest, gap)
			if gap > takeover {
				t.Errorf("%s made no progress for %v after version %d (%s)", run.ID, gap, entries[i-1].Header.Version, entries[i].Record.GetWriter().GetExecutor())
			}
		}
	}
	t.Logf("the longest time without progress: %v of %v", longest, takeover)
}
