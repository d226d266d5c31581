package mesh

import (
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// twoHosts starts a mesh with two tool hosts whose worker knows one of them.
func twoHosts(t *testing.T) *meshtest.Mesh {
	t.Helper()
	m := meshtest.Start(t, bin, meshtest.Config{})
	m.Process("turn").Kill()
	m.Start("turn", meshtest.Args("--host-patience", "3s"))
	m.AwaitReady("turn")
	// The worker locates a tool host at its first turn and keeps it.
	d, entries := slowly("first", "echo begin >> out").through(t.Context(), t, m, "first")
	sound(t, d, entries)
	m.Start("toolhost-2")
	m.AwaitReady("toolhost-2")
	return m
}

func slowly(name, command string) scenario {
	return scenario{
		name: name, lines: 1,
		script: "turns:\n  - {text: One command., calls: [{name: run_command, arguments: {command: '" + command + "'}}]}\n" +
			"  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n",
	}
}

// TestSystemLostToolHostIsLeft checks that a worker whose tool host is permanently gone sends
// calls that never started there to the other one.
func TestSystemLostToolHostIsLeft(t *testing.T) {
	t.Parallel()
	m := twoHosts(t)
	m.Process("toolhost").Kill()
	begun := time.Now()
	d, entries := slowly("moved", "echo begin >> out").through(t.Context(), t, m, "moved")
	sound(t, d, entries)
	for id, outcome := range meshtest.Outcomes(entries) {
		if outcome != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE {
			t.Errorf("call %s ended %v", id, outcome)
		}
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestSystemLostToolHostIsGivenUp checks that a call that ran on a permanently lost tool host
// is unknown, and that the other one never runs it.
func TestSystemLostToolHostIsGivenUp(t *testing.T) {
	t.Parallel()
	m := twoHosts(t)
	s := slowly("given-up", "echo begin >> out; sleep 60; echo end >> out")
	once := false
	s.drive = func(d *driver, e *harnessv1.Event) {
		if e.GetToolCall().GetTool() != "run_command" || once {
			return
		}
		once = true
		waittest.Eventually(t, "the command begins", func() bool { return len(d.lines()) > 0 })
		m.Process("toolhost").Kill()
	}
	d, entries := s.through(t.Context(), t, m, "given-up")
	sound(t, d, entries)
	unknown := 0
	for _, outcome := range meshtest.Outcomes(entries) {
		if outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
			unknown++
		}
	}
	if unknown != 1 || len(d.lines()) != 1 {
		t.Errorf("%d calls are unknown, the command left %v", unknown, d.lines())
	}
}
