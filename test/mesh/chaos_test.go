package mesh

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// appending is a scenario of the given number of calls, each of which appends its own
// id.
func appending(name string, calls int) scenario {
	var b strings.Builder
	b.WriteString("turns:\n")
	for i := 1; i <= calls; i++ {
		fmt.Fprintf(&b, "  - {text: 'Call %d.', calls: [{name: run_command, arguments: {command: 'echo id-%d >> out; sleep 0.03'}}]}\n", i, i)
	}
	b.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	return scenario{name: name, script: b.String(), lines: calls}
}

// TestSystemNoCallRunsTwice kills turn workers, the tool host, and both together, at a
// hundred random times, while runs append the ids of their calls to a file. No id may
// appear twice, and a call without a line must be reported as unknown. Between two kills
// the mesh completes something: a supervisor that is slower than the kills proves nothing.
func TestSystemNoCallRunsTwice(t *testing.T) {
	t.Parallel()
	const kills = 100
	m := meshtest.Start(t, bin, meshtest.Config{Workers: 2})
	names := []string{"turn", "turn-2", "toolhost"}
	for _, name := range names {
		m.Respawn(name, nil)
	}
	random := rand.New(rand.NewPCG(*seed, 3))
	var running sync.WaitGroup
	over := make(chan struct{})
	unknown, done := 0, 0
	var mu sync.Mutex
	runs := 0
	var events atomic.Int64
	for lane := range 4 {
		s := appending(fmt.Sprintf("appending-%d", lane), 40)
		s.patience = 5 * waittest.Patience
		s.drive = func(*driver, *harnessv1.Event) { events.Add(1) }
		running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				d, entries := s.through(context.WithoutCancel(t.Context()), t, m, fmt.Sprintf("%s-%d", s.name, i))
				sound(t, d, entries)
				mu.Lock()
				runs++
				for _, outcome := range meshtest.Outcomes(entries) {
					if outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
						unknown++
					} else {
						done++
					}
				}
				mu.Unlock()
				if t.Failed() {
					return
				}
			}
		})
	}
	for n := 0; n < kills && !t.Failed(); n++ {
		before := events.Load()
		for _, name := range names {
			m.AwaitAlive(name)
		}
		waittest.Eventually(t, "an event since the last kill", func() bool { return events.Load() > before })
		<-time.After(time.Duration(random.IntN(200)) * time.Millisecond)
		switch n % 3 {
		case 0:
			m.Process(names[random.IntN(2)]).Signal(syscall.SIGKILL)
		case 1:
			m.Process("toolhost").Signal(syscall.SIGKILL)
		default:
			m.Process(names[random.IntN(2)]).Signal(syscall.SIGKILL)
			m.Process("toolhost").Signal(syscall.SIGKILL)
		}
	}
	close(over)
	running.Wait()
	t.Logf("%d kills; %d runs, %d calls done, %d unknown", kills, runs, done, unknown)
	if unknown == 0 {
		t.Error("no kill met a call")
	}
}

// TestSystemLedgerIsLost deletes the tool host's ledger during a call and kills the host. The
// call must be unknown, and there must be no second line.
func TestSystemLedgerIsLost(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := slow
	s.name = "ledger"
	once := false
	s.drive = func(d *driver, e *harnessv1.Event) {
		if e.GetToolCall().GetTool() != "run_command" || once {
			return
		}
		once = true
		waittest.Eventually(t, "the command begins", func() bool { return len(d.lines()) > 0 })
		m.Process("toolhost").Kill()
		ledgers, err := filepath.Glob(filepath.Join(m.Data("toolhost"), "tools", "ledger.db"))
		if err != nil || len(ledgers) != 1 {
			t.Fatalf("ledgers: %v, %v", ledgers, err)
		}
		d.must(os.Remove(ledgers[0]))
		m.Start("toolhost")
	}
	d, entries := s.through(t.Context(), t, m, "lost")
	if err := meshtest.Check(entries); err != nil {
		t.Error(err)
	}
	if lines := d.lines(); !slices.Equal(lines, []string{"begin"}) {
		t.Errorf("the command left %v", lines)
	}
	unknown := 0
	for _, outcome := range meshtest.Outcomes(entries) {
		if outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
			unknown++
		}
	}
	if unknown != 1 {
		t.Errorf("%d calls are unknown, want one: %v", unknown, meshtest.Outcomes(entries))
	}
}

// stubborn forks twice, leaves its session and ignores the signals that can be ignored.
const stubborn = `trap "" TERM INT HUP; echo begin >> out; (setsid sh -c "trap \"\" TERM INT HUP; sleep %[1]s & sleep %[1]s" &) ; setsid sleep %[1]s & sleep %[1]s`

// TestSystemNothingOutlivesTheToolHost kills the tool host while a command detaches itself.
// After the restart nothing of the command may be left.
func TestSystemNothingOutlivesTheToolHost(t *testing.T) {
	t.Parallel()
	marker := fmt.Sprintf("98%07d", os.Getpid())
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := scenario{
		name: "stubborn",
		script: "turns:\n  - {text: Off., calls: [{name: run_command, arguments: {command: '" + fmt.Sprintf(stubborn, marker) + "'}}]}\n" +
			"  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n",
		lines: 1,
	}
	once := false
	s.drive = func(d *driver, e *harnessv1.Event) {
		if e.GetToolCall().GetTool() != "run_command" || once {
			return
		}
		once = true
		waittest.Eventually(t, "it has forked", func() bool { return len(marked(t, marker)) >= 4 })
		m.Process("toolhost").Kill()
		m.Start("toolhost")
		m.AwaitReady("toolhost")
		if left := marked(t, marker); len(left) > 0 {
			t.Errorf("left after the restart: %v", left)
		}
	}
	d, entries := s.through(t.Context(), t, m, "stubborn")
	sound(t, d, entries)
}

// marked returns the processes that sleep for the marker's time.
func marked(t testing.TB, marker string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no /proc to look into: %v", err)
	}
	var found []string
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(line), "sleep\x00"+marker) {
			found = append(found, filepath.Base(filepath.Dir(path)))
		}
	}
	return found
}

// TestSystemWatchersSeeTheSame attaches two hundred watchers at random versions while
// gateways, workers and the bus are killed. Each must receive what is stored from its
// version on, once and in order.
func TestSystemWatchersSeeTheSame(t *testing.T) {
	t.Parallel()
	const lanes, watchers = 5, 40
	m := meshtest.Start(t, bin, meshtest.Config{})
	for _, role := range []string{"gateway", "turn", "repair"} {
		m.Respawn(role, nil)
	}
	random := rand.New(rand.NewPCG(*seed, 4))
	var mu sync.Mutex // guards random
	number := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	over := make(chan struct{})
	var trouble sync.WaitGroup
	// On a busy machine a process may take longer to start than to be killed again:
	// with unlimited kills no watcher would ever finish.
	const enough = 24
	kills := 0
	trouble.Go(func() {
		for kills < enough {
			select {
			case <-over:
				return
			case <-time.After(time.Duration(200+number(600)) * time.Millisecond):
			}
			switch n := number(4); n {
			case 3:
				m.Bus.Kill(0)
				m.Bus.Restart(0)
				m.Bus.AwaitReady(0)
			default:
				m.Process([]string{"gateway", "turn", "repair"}[n]).Signal(syscall.SIGKILL)
			}
			kills++
		}
	})
	var running sync.WaitGroup
	for lane := range lanes {
		s := appending(fmt.Sprintf("watched-%d", lane), 25)
		id := s.name
		begun := make(chan struct{})
		var once sync.Once
		s.drive = func(*driver, *harnessv1.Event) { once.Do(func() { close(begun) }) }
		seen := make([][]string, watchers)
		after := make([]uint64, watchers)
		var watching sync.WaitGroup
		for w := range watchers {
			watching.Go(func() {
				<-begun
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waittest.Patience)
				defer cancel()
				<-time.After(time.Duration(number(5000)) * time.Millisecond)
				run, err := waittest.Retry(ctx, func(ctx context.Context) (*harnessv1.GetRunResponse, error) {
					return m.Client().GetRun(ctx, &harnessv1.GetRunRequest{RunId: id})
				})
				if err != nil {
					t.Errorf("get %s: %v", id, err)
					return
				}
				after[w] = uint64(number(int(run.GetRun().GetVersion()) + 1))
				_, err = waittest.Watch(ctx, m.Client(), "default", id, after[w], harnessv1.WatchUntil_WATCH_UNTIL_END, func(e *harnessv1.Event) {
					seen[w] = append(seen[w], e.GetId())
				})
				if err != nil {
					t.Errorf("watch %s after %d: %v", id, after[w], err)
				}
			})
		}
		running.Go(func() {
			d, entries := s.through(context.WithoutCancel(t.Context()), t, m, id)
			sound(t, d, entries)
			watching.Wait()
			for w := range watchers {
				if want := stored(entries, after[w]); !slices.Equal(seen[w], want) {
					t.Errorf("%s after %d: saw %d events, stored are %d:\n%v\n%v", id, after[w], len(seen[w]), len(want), seen[w], want)
				}
			}
		})
	}
	running.Wait()
	close(over)
	trouble.Wait()
	t.Logf("%d watchers, %d kills", lanes*watchers, kills)
	if kills < 5 {
		t.Errorf("only %d kills", kills)
	}
}

// stored returns the ids of the events after a version, which every watcher must
// receive.
func stored(entries []runlog.Entry, after uint64) []string {
	var ids []string
	for _, e := range entries {
		for i := range e.Record.GetEvents() {
			if e.Header.Version > after {
				ids = append(ids, fmt.Sprintf("%d-%d", e.Header.Version, i))
			}
		}
	}
	return ids
}
