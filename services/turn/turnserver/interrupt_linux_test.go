package turnserver_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// witnessLog looks at the machine in the moment in which a worker appends a record that
// reports an interrupt: before anything else can see the record.
type witnessLog struct {
	*jetstream.Log
	// look returns what is still running.
	look func() []string

	mu    sync.Mutex
	looks int
	left  []string
}

func (w *witnessLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	killed := rec.GetJournal().GetToolFinished().GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED
	if killed || rec.GetStep().GetTurnComplete().GetInterrupted() {
		w.mu.Lock()
		w.looks++
		for _, what := range w.look() {
			w.left = append(w.left, fmt.Sprintf("version %d: %s", rec.GetVersion(), what))
		}
		w.mu.Unlock()
	}
	return w.Log.Append(ctx, rec)
}

// startWitnessed starts the worker on a log that looks at the machine.
func (b *bed) startWitnessed(look func() []string) *witnessLog {
	b.Helper()
	w := &witnessLog{Log: b.Log, look: look}
	b.Start(func(ctx context.Context, cfg executor.Config) error {
		cfg.Log = w
		return b.server.Run(ctx, cfg)
	})
	return w
}

// saw checks that the turn was interrupted, that the log was looked at, and that nothing was
// running.
func (w *witnessLog) saw(t *testing.T, outcome *harnessv1.Record, looks int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !outcome.GetStep().GetTurnComplete().GetInterrupted() || w.looks != looks {
		t.Errorf("after %d looks, want %d, the outcome is %v", w.looks, looks, outcome.GetStep().GetTurnComplete())
	}
	if len(w.left) > 0 {
		t.Errorf("runs although it is recorded as ended:\n%s", strings.Join(w.left, "\n"))
	}
}

// marked returns the processes, with their states, whose arguments have a text. Arguments are
// readable whatever namespace and user a process has.
func marked(mark string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), mark) {
			found = append(found, filepath.Dir(name)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

var marks atomic.Uint64

// newMark returns an argument of sleep, about an hour, that no other process has.
func newMark() string { return fmt.Sprintf("3600.%d%06d", os.Getpid(), marks.Add(1)) }

// clinging is a command whose processes do all that they can to survive: they ignore
// signals, leave the session, the process group, their parent and the folder.
func clinging(mark string) string {
	return strings.ReplaceAll(`trap '' TERM INT HUP QUIT
(setsid sh -c 'trap "" TERM INT HUP; cd /; (setsid sleep MARK &); while :; do sleep MARK; done' &)
(cd / && exec setsid sleep MARK) &
echo begun > gate
while :; do sleep MARK; done`, "MARK", mark)
}

// TestNothingRunsWhenKilledCallsAreRecorded, at each level of confinement that works here: all
// processes of an interrupted command are dead in the moment of the record.
func TestNothingRunsWhenKilledCallsAreRecorded(t *testing.T) {
	t.Parallel()
	described, err := newBed(t).host.DescribeHost(t.Context(), &harnessv1.DescribeHostRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for level := sandbox.Off; level <= described.GetSandbox().GetLevel(); level++ {
		t.Run(sandbox.Name(level), func(t *testing.T) {
			t.Parallel()
			mark := newMark()
			b := newBed(t, calls(call("c", "run_command", "command", clinging(mark)), call("d", "run_command", "command", "touch second")))
			passed := b.gate("gate")
			s := b.state()
			s.Config.Sandbox = &harnessv1.SandboxConfig{Level: level}
			b.put(s)
			w := b.startWitnessed(func() []string { return marked(mark) })
			passed()
			b.within("every process of the command runs", func() bool { return len(marked("sleep\x00"+mark)) >= 4 })
			b.Interrupt()
			_, outcome := b.records()
			w.saw(t, outcome, 3) // two calls and the step
			if _, err := os.Stat(filepath.Join(b.workspace, "second")); err == nil {
				t.Error("a call ran after the interrupt")
			}
		})
	}
}

// TestNothingRunsWhenParallelCallsAreRecorded: the test is not parallel, because it looks at
// the goroutines of the tool host in this process.
func TestNothingRunsWhenParallelCallsAreRecorded(t *testing.T) {
	slow := strings.Repeat("(a?){300}", 9) + "b"
	b := newBed(t, calls(
		call("c", "search_files", "pattern", slow, "path", "line"), call("d", "search_files", "pattern", slow), modeltest.Call{ID: "e", Name: "read_file", Arguments: `{"path":"endless","offset":2}`},
	))
	b.write("line", strings.Repeat("a", 1<<20))
	b.write("endless", strings.Repeat("text ", 4000)) // and then nothing, without blocks on the disk
	if err := os.Truncate(filepath.Join(b.workspace, "endless"), 64<<30); err != nil {
		t.Fatal(err)
	}
	running := func(names ...string) (found []string) {
		for _, stack := range strings.Split(stacks(), "\n\n") {
			for _, name := range names {
				if strings.Contains(stack, "toolhostserver/tools."+name+"(") {
					found = append(found, name)
				}
			}
		}
		return found
	}
	b.put(b.state())
	w := b.startWitnessed(func() []string { return running("searchFiles", "readFile") })
	b.within("all calls run", func() bool { return len(running("searchFiles", "readFile")) == 3 })
	b.Interrupt()
	_, outcome := b.records()
	w.saw(t, outcome, 4)
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size {
			return string(text[:n])
		}
	}
}

// TestTheModelIsDisconnectedWhenAnInterruptIsRecorded: no connection to the provider is open
// in the moment of the record, before its answer has begun and in the middle of it.
func TestTheModelIsDisconnectedWhenAnInterruptIsRecorded(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]modeltest.Reply{
		"request": {Fault: modeltest.FaultHang},
		"stream":  {Fault: modeltest.FaultSilence, Text: "Looking for the number."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, reply)
			var open atomic.Int64
			transport := b.model.Client().Transport.(*http.Transport)
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				open.Add(1)
				return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { open.Add(-1) })}, nil
			}
			b.put(b.state())
			w := b.startWitnessed(func() []string {
				if n := open.Load(); n > 0 {
					return []string{fmt.Sprintf("%d connections to the provider", n)}
				}
				return nil
			})
			<-b.model.Arrived()
			if open.Load() == 0 {
				t.Fatal("no connection is counted")
			}
			b.Interrupt()
			_, outcome := b.records()
			w.saw(t, outcome, 1)
		})
	}
}

// countedConn reports that it was closed.
type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.closed()
	return err
}
