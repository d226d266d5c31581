package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBackgroundCommandNextToItsTests starts a command in the background, which later calls of
// the run talk to and read. When the run has ended, nothing of it is left.
func TestBackgroundCommandNextToItsTests(t *testing.T) {
	t.Parallel()
	marker := fmt.Sprintf("97%d.1", os.Getpid())
	dir := t.TempDir()
	script := write(t, t.TempDir(), "script.yaml", fmt.Sprintf(`turns:
  - {calls: [{name: run_command, arguments: {command: "mkfifo question answer"}}]}
  - {calls: [{name: run_command, arguments: {command: "echo ready; read line < question; echo got $line | tee answer; sleep %s", background: true}}]}
  - {calls: [{name: command_output, arguments: {id: bg1, wait_seconds: 60}}]}
  - {calls: [{name: run_command, arguments: {command: "echo hello > question; cat answer > tested"}}]}
  - {calls: [{name: command_output, arguments: {id: bg1, offset: 6, wait_seconds: 60}}]}
  - {calls: [{name: work_complete, arguments: {summary: tested}}]}
`, marker))
	code, stdout, stderr := newHome(t).finish("run", "--workspace", dir, "--model", "script:"+script,
		"--allow", "run_command", "--output", "jsonl", "test it")
	if left := alive(t, marker); len(left) > 0 {
		t.Errorf("left over:\n%s", strings.Join(left, "\n"))
	}
	tested, err := os.ReadFile(filepath.Join(dir, "tested"))
	if code != 0 || err != nil || string(tested) != "got hello\n" {
		t.Errorf("exit %d, %q, %v\n%s", code, tested, err, stderr)
	}
	for _, want := range []string{"background commands were ended", "bg1 (echo ready;"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the events have no %q:\n%s", want, stdout)
		}
	}
}

// TestCtrlCKillsBackgroundCommands interrupts a run between calls that a background command
// outlives. When harness ends, nothing of the command is left, and the run can continue.
func TestCtrlCKillsBackgroundCommands(t *testing.T) {
	t.Parallel()
	marker, other := fmt.Sprintf("97%d.2", os.Getpid()), fmt.Sprintf("97%d.3", os.Getpid())
	dir, home := t.TempDir(), newHome(t)
	script := write(t, t.TempDir(), "script.yaml", fmt.Sprintf(`turns:
  - {calls: [{name: run_command, arguments: {command: "trap '' TERM INT HUP; (setsid sleep %[1]s &); sleep %[1]s", background: true}}]}
  - {calls: [{name: run_command, arguments: {command: "sleep %[2]s"}}]}
  - {calls: [{name: work_complete, arguments: {summary: over}}]}
`, marker, other))
	p := home.start(environment(), "run", "--run-id", "r1", "--workspace", dir, "--model", "script:"+script,
		"--allow", "run_command", "--output", "jsonl", "be interrupted")
	eventually(t, "the second command, next to the first", func() bool { return len(alive(t, other)) > 0 && len(alive(t, marker)) >= 2 })
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code, _, _ := p.wait()
	if left := append(alive(t, marker), alive(t, other)...); code != 4 || len(left) > 0 {
		t.Errorf("exit %d, left over:\n%s", code, strings.Join(left, "\n"))
	}
	code, stdout, _ := home.finish("resume", "--output", "json", "r1")
	if result := object(t, stdout); code != 0 || result["status"] != "DONE" {
		t.Errorf("resume: exit %d, %v", code, result)
	}
}
