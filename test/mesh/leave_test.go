package mesh

import (
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// TestSystemWorkerIsCutOff disconnects the worker that has a turn from the bus, but not from
// the tool host. Another one must take over within the takeover time. When the
// connection is restored, the first one must change nothing.
func TestSystemWorkerIsCutOff(t *testing.T) {
	t.Parallel()
	const takeover = 5 * time.Second
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: takeover})
	proxy := meshtest.StartProxy(t, m.Bus)
	m.Process("turn").Kill()
	m.Start("turn", meshtest.Via(proxy.URL()))
	m.AwaitReady("turn")
	var cut time.Time
	s := slow
	s.name = "cut"
	s.drive = func(_ *driver, e *harnessv1.Event) {
		if e.GetToolCall().GetTool() == "run_command" && cut.IsZero() {
			m.Start("turn-2")
			m.AwaitReady("turn-2")
			cut = time.Now()
			proxy.Cut()
		}
	}
	d, entries := s.through(t.Context(), t, m, "cut")
	sound(t, d, entries)
	if again := claims(entries); len(again) != 2 {
		t.Errorf("the turn was claimed %d times", len(again))
	} else if took := again[1].Record.GetCommitTime().AsTime().Sub(cut); took > takeover {
		t.Errorf("taken over after %v, the limit is %v", took, takeover)
	} else {
		t.Logf("taken over after %v of %v", took, takeover)
	}
	proxy.Restore()
	m.Process("turn-2").Kill()
	next, more := work.through(t.Context(), t, m, "afterwards")
	sound(t, next, more)
	if after := m.Entries(d.run); len(after) != len(entries) {
		t.Errorf("the worker that was cut off appended %v", after[len(entries):])
	}
}

// TestSystemHandingBack checks that a worker that receives SIGTERM during long work exits
// within its bound, and that its work continues elsewhere immediately.
func TestSystemHandingBack(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: 30 * time.Second})
	m.Process("turn").Kill()
	m.Start("turn", meshtest.Args("--drain", "500ms"))
	m.AwaitReady("turn")
	var left time.Time
	s := scenario{name: "long", lines: 2, script: `turns:
  - {text: "This takes long.", calls: [{name: run_command, arguments: {command: 'echo begin >> out; sleep 8; echo end >> out'}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`}
	s.drive = func(_ *driver, e *harnessv1.Event) {
		if e.GetToolCall().GetTool() != "run_command" || !left.IsZero() {
			return
		}
		old := m.Process("turn")
		m.Start("turn-2")
		m.AwaitReady("turn-2")
		begun := time.Now()
		if code := old.Terminate(); code != 0 {
			t.Errorf("exit %d", code)
		}
		left = time.Now()
		if took := left.Sub(begun); took > 5*time.Second {
			t.Errorf("it took %v to leave", took)
		}
	}
	d, entries := s.through(t.Context(), t, m, "handed-back")
	sound(t, d, entries)
	again := claims(entries)
	if len(again) != 2 {
		t.Fatalf("the turn was claimed %d times", len(again))
	}
	if took := again[1].Record.GetCommitTime().AsTime().Sub(left); took > 5*time.Second {
		t.Errorf("taken over %v after the other had left: expected immediately", took)
	}
	if outcomes := meshtest.Outcomes(entries); len(d.lines()) != 2 {
		t.Errorf("the command did not continue: %v, %v", d.lines(), outcomes)
	}
}

// TestSystemToolHostIsTerminated checks that a tool host that receives SIGTERM lets its calls
// end.
func TestSystemToolHostIsTerminated(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := slow
	s.name = "draining"
	once := false
	s.drive = func(_ *driver, e *harnessv1.Event) {
		if e.GetToolCall().GetTool() != "run_command" || once {
			return
		}
		once = true
		if code := m.Process("toolhost").Terminate(); code != 0 {
			t.Errorf("exit %d", code)
		}
		m.Start("toolhost")
	}
	d, entries := s.through(t.Context(), t, m, "draining")
	sound(t, d, entries)
	if lines := d.lines(); len(lines) != 2 {
		t.Errorf("the command was not allowed to end: %v", lines)
	}
	for id, outcome := range meshtest.Outcomes(entries) {
		if outcome != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE {
			t.Errorf("call %s ended %v", id, outcome)
		}
	}
}
