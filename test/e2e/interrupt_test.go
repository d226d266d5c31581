package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// stubborn forks, double-forks, starts a separate session and ignores every
// signal that can be ignored. Its marker identifies all of its processes.
const stubborn = `trap '' TERM INT HUP
sleep %[1]s &
setsid sh -c 'trap "" TERM INT HUP; (sleep %[1]s & sleep %[1]s) & sleep %[1]s' &
(setsid sleep %[1]s &)
sleep %[1]s`

// alive lists the processes whose command line holds the marker.
func alive(t *testing.T, marker string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no /proc to look into: %v", err)
	}
	var found []string
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		if text := strings.ReplaceAll(string(line), "\x00", " "); strings.Contains(text, "sleep "+marker) {
			found = append(found, filepath.Base(filepath.Dir(path))+": "+text)
		}
	}
	return found
}

// eventually polls for something that another process brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("never happened: %s", what)
		}
	}
}

// TestCtrlCKillsTheWholeTree interrupts a command that does all it can to
// survive. When harness ends, none of its processes is left, and the run can continue.
func TestCtrlCKillsTheWholeTree(t *testing.T) {
	for _, how := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{{"interrupt", syscall.SIGINT, 4}, {"kill", syscall.SIGKILL, -1}} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			marker := fmt.Sprintf("98%d.%d", os.Getpid(), how.signal)
			dir := t.TempDir()
			command := write(t, dir, "stubborn.sh", fmt.Sprintf(stubborn, marker))
			script := write(t, t.TempDir(), "script.yaml", fmt.Sprintf(`turns:
  - {calls: [{name: run_command, arguments: {command: "sh %s"}}]}
  - {calls: [{name: work_complete, arguments: {summary: over}}]}
`, command))
			home := newHome(t)
			p := home.start(environment(), "run", "--run-id", "r1", "--workspace", dir, "--model", "script:"+script,
				"--allow", "run_command", "--output", "jsonl", "be stubborn")
			eventually(t, "the whole tree of the command", func() bool { return len(alive(t, marker)) >= 6 })
			if how.signal == syscall.SIGKILL {
				home.crash(p)
			} else if err := p.cmd.Process.Signal(how.signal); err != nil {
				t.Fatal(err)
			}
			code, _, stderr := p.wait()
			if code != how.code {
				t.Errorf("exit %d, want %d", code, how.code)
			}
			if how.signal == syscall.SIGKILL {
				// No process waited for the tree; it detects that its host is gone.
				eventually(t, "the end of the whole tree", func() bool { return len(alive(t, marker)) == 0 })
			} else if left := alive(t, marker); len(left) > 0 {
				t.Errorf("left over:\n%s", strings.Join(left, "\n"))
			} else if !strings.Contains(stderr, "harness resume") {
				t.Errorf("stderr has no command to resume:\n%s", stderr)
			}
			code, stdout, _ := home.finish("resume", "--output", "json", "r1")
			if result := object(t, stdout); code != 0 || result["status"] != "DONE" {
				t.Errorf("resume: exit %d, %v", code, result)
			}
		})
	}
}

// TestOutputOfAnInterruptedCommand: what a command had printed when it was interrupted reaches the
// model with the next request, and show.
func TestOutputOfAnInterruptedCommand(t *testing.T) {
	h, dir := newHousehold(t), t.TempDir()
	server := modeltest.NewServer(t, calls(call("a", "run_command", `{"command":"echo halfway; touch began; sleep 60"}`)), complete)
	env := h.env("OPENAI_API_KEY=sk-x", "OPENAI_BASE_URL="+server.BaseURL())
	p := start(t, env, "run", "--workspace", dir, "--run-id", "r1", "--model", "openai:test-model", "--allow", "run_command", "--output", "json", "work")
	eventually(t, "the output", func() bool { _, err := os.Stat(filepath.Join(dir, "began")); return err == nil })
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := p.wait(); code != 4 {
		t.Errorf("exit %d, want 4", code)
	}
	_, shown, _ := start(t, env, "show", "r1", "--conversation").wait()
	if code, _, stderr := start(t, env, "resume", "r1").wait(); code != 0 {
		t.Fatalf("resume: exit %d\n%s", code, stderr)
	}
	for what, text := range map[string]string{"show": shown, "the request": string(server.Requests()[1].Body)} {
		if text = strings.ReplaceAll(text, `\n`, " "); !strings.Contains(strings.Join(strings.Fields(text), " "), "halfway [The run was interrupted") {
			t.Errorf("%s has not what the command had printed:\n%s", what, text)
		}
	}
}
