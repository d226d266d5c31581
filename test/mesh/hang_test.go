package mesh

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// slow runs a command long enough for a worker to be stopped during it.
var slow = scenario{
	name: "slow",
	script: `turns:
  - {text: "This takes a moment.", calls: [{name: run_command, arguments: {command: 'echo begin >> out; sleep 2; echo end >> out'}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`,
	lines: 2,
}

// TestSystemStoppedWorkerIsReplaced stops the worker that has a turn (SIGSTOP) for fifteen
// seconds. Another one must take over within the takeover time and end the run. When
// the first one continues, it must change nothing.
func TestSystemStoppedWorkerIsReplaced(t *testing.T) {
	for _, takeover := range []time.Duration{time.Second, 5 * time.Second} {
		t.Run(takeover.String(), func(t *testing.T) {
			t.Parallel()
			m := meshtest.Start(t, bin, meshtest.Config{Takeover: takeover, Workers: 2})
			var stopped time.Time
			var hung *meshtest.Process
			s := slow
			s.drive = func(d *driver, e *harnessv1.Event) {
				if e.GetToolCall() == nil || hung != nil {
					return
				}
				hung = m.Writer(claims(m.Entries(d.run))[0])
				stopped = time.Now()
				hung.Signal(syscall.SIGSTOP)
			}
			d, entries := s.through(t.Context(), t, m, "stopped")
			sound(t, d, entries)
			again := claims(entries)
			if len(again) < 2 {
				t.Fatalf("the turn was claimed %d times", len(again))
			}
			if took := again[1].Record.GetCommitTime().AsTime().Sub(stopped); took > takeover {
				t.Errorf("taken over after %v, the limit is %v", took, takeover)
			} else {
				t.Logf("taken over after %v of %v", took, takeover)
			}
			<-time.After(time.Until(stopped.Add(15 * time.Second))) // the worker stays stopped for this time
			before := len(m.Entries(d.run))
			hung.Signal(syscall.SIGCONT)
			// It has continued once it has done a turn of another run.
			other := m.Process("turn")
			if other == hung {
				other = m.Process("turn-2")
			}
			other.Kill()
			next, more := work.through(t.Context(), t, m, "afterwards")
			sound(t, next, more)
			if after := m.Entries(d.run); len(after) != before {
				t.Errorf("the worker that was stopped appended %v", after[before:])
			}
		})
	}
}

// claims returns the records that claim the first turn.
func claims(entries []runlog.Entry) []runlog.Entry {
	var all []runlog.Entry
	for _, e := range entries {
		if e.Record.GetJournal().GetTurnStarted().GetTurnNumber() == 1 {
			all = append(all, e)
		}
	}
	return all
}

// TestSystemInterruptWithDeadWorker interrupts a run whose worker is dead. The worker that
// takes over must kill the command within the takeover time.
func TestSystemInterruptWithDeadWorker(t *testing.T) {
	t.Parallel()
	const takeover = 5 * time.Second
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: takeover, Workers: 2})
	var asked, killed time.Time
	var once sync.Once
	s := interrupted
	s.drive = func(d *driver, e *harnessv1.Event) {
		switch {
		case e.GetToolCall() != nil:
			once.Do(func() {
				waittest.Eventually(t, "the command begins", func() bool { return len(d.lines()) > 0 })
				m.Writer(claims(m.Entries(d.run))[0]).Kill()
				asked = time.Now()
				_, err := d.client.InterruptRun(d.ctx, &harnessv1.InterruptRunRequest{RunId: d.run.ID, RequestId: "stop"})
				d.must(err)
			})
		case e.GetRunInterrupted() != nil:
			killed = time.Now()
			_, err := waittest.Retry(d.ctx, func(ctx context.Context) (*harnessv1.ResumeRunResponse, error) {
				return d.client.ResumeRun(ctx, &harnessv1.ResumeRunRequest{RunId: d.run.ID, RequestId: "go"})
			})
			d.must(err)
		}
	}
	d, entries := s.through(t.Context(), t, m, "dead")
	sound(t, d, entries)
	const liveInterrupt = takeover / 2 // the time of an interrupt with a live worker, on a busy machine
	if took := killed.Sub(asked); took > takeover+liveInterrupt {
		t.Errorf("interrupted after %v, the limit is %v", took, takeover+liveInterrupt)
	} else {
		t.Logf("interrupted after %v", took)
	}
}

// TestSystemTermination checks that a role that receives SIGTERM finishes its work and exits
// with 0, so that no other worker has to take over.
func TestSystemTermination(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: 30 * time.Second})
	s := slow
	s.drive = func(d *driver, e *harnessv1.Event) {
		if e.GetToolCall().GetTool() != "run_command" {
			return
		}
		old := m.Process("turn")
		m.Start("turn-2")
		m.AwaitReady("turn-2")
		if code := old.Terminate(); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	begun := time.Now()
	d, entries := s.through(t.Context(), t, m, "drained")
	sound(t, d, entries)
	if n := len(claims(entries)); n != 1 {
		t.Errorf("the first turn was claimed %d times", n)
	}
	if took := time.Since(begun); took > 25*time.Second {
		t.Errorf("it took %v: something waited for a takeover", took)
	}
	if _, err := os.Stat(filepath.Join(m.Data("turn"), "holder.json")); !os.IsNotExist(err) {
		t.Errorf("what it held is still there: %v", err)
	}
}
