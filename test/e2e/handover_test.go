package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// newerBuild returns a program of the next level.
func newerBuild(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "harness")
	if err := build(path, "-X", "github.com/harnessmesh/harnessmesh/cmd/harness/internal/node.apiLevel=2", "-X", "main.version=newer"); err != nil {
		t.Fatal(err)
	}
	return path
}

// printed waits until a process has printed a text on stderr.
func (p *process) printed(text string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%q on stderr", text), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.Contains(p.stderr.String(), text)
	})
}

// TestSystemHandOverToANewerBuild: a client of a newer level replaces the background process while
// one run waits for its model and another one for a command. The client prints what it waits
// for, the former build works until then, nothing happens twice, and the keys of the runs pass
// on in memory.
func TestSystemHandOverToANewerBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program again")
	}
	t.Parallel()
	newer, h := newerBuild(t), newHousehold(t)
	const key = "sk-handed-over-0123456789abcdef"
	asked, proceed := make(chan struct{}, 1), make(chan struct{})
	server := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
		switch answered := len(r.Messages); {
		case answered <= 3 && !strings.Contains(fmt.Sprint(r.Messages), "call_id_w"):
			asked <- struct{}{}
			<-proceed
			return calls(call("call_id_w", "write_file", `{"path":"written","content":"by the model"}`), call("call_id_x", "run_command", `{"command":"echo x >> effects"}`))
		default:
			return complete
		}
	})
	server.Key = key
	thinking, commanding, quick := t.TempDir(), t.TempDir(), t.TempDir()
	done := write(t, quick, "s.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	busy := write(t, commanding, "s.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"while ! [ -e go ]; do sleep 0.05; done; echo x >> effects\"}}]}\n"+
		"  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	second := start(t, h.env(), "run", "--workspace", commanding, "--yolo", "--model", "script:"+busy, "--run-id", "busy", "--output", "jsonl", "work")
	second.until(is("tool.call"))
	first := start(t, h.env("OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+server.BaseURL()), "run", "--workspace", thinking, "--yolo",
		"--model", "openai:test-model", "--run-id", "thinking", "--output", "jsonl", "work")
	<-asked
	former := h.pid()

	client := startProgram(t, newer, h.env(), "run", "--workspace", quick, "--model", "script:"+done, "--output", "json", "work")
	client.printed(fmt.Sprintf("waiting to replace the background process %d", former))
	client.printed("busy runs while ! [ -e go ]; do sleep 0.05; done; echo x >> effects; harness daemon restart --now does not wait")
	if code, _, stderr := start(t, h.env(), "run", "--workspace", quick, "--model", "script:"+done, "--output", "json", "work").wait(); code != 0 || h.pid() != former {
		t.Errorf("the former build does not work meanwhile: exit %d, process %d\n%s", code, h.pid(), stderr)
	}

	write(t, commanding, "go", "")
	client.printed("model calls and file tools")
	close(proceed)
	if code, stdout, stderr := client.wait(); code != 0 || object(t, stdout)["status"] != "DONE" {
		t.Errorf("the newer client: exit %d\n%s%s", code, stdout, stderr)
	}
	if h.pid() == former {
		t.Error("no other process has the data directory")
	}
	if _, _, stderr := first.wait(); !strings.Contains(stderr, "is newer than this program") { // it is of the former level
		t.Errorf("a client of the former build:\n%s", stderr)
	}
	second.wait() // may have seen the end of its run before
	show := func(run string) (status string) {
		_, stdout, _ := startProgram(t, newer, h.env(), "show", run, "--output", "json").wait()
		status, _ = object(t, stdout)["status"].(string)
		return status
	}
	for run, dir := range map[string]string{"thinking": thinking, "busy": commanding} {
		eventually(t, "the end of "+run, func() bool { return show(run) != "RUNNING" })
		if status := show(run); status != "DONE" {
			t.Errorf("%s is %s", run, status)
		}
		if raw, _ := os.ReadFile(filepath.Join(dir, "effects")); string(raw) != "x\n" {
			t.Errorf("effects of %s: %q", run, raw)
		}
	}
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
	for _, path := range append(filesWith(t, h.home, key), filesWith(t, fmt.Sprintf("/proc/%d", h.pid()), key)...) {
		t.Errorf("a key is in %s", path)
	}
	if code, _, stderr := start(t, h.env(), "list").wait(); code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "use that version") {
		t.Errorf("an older client: exit %d\n%s", code, stderr)
	}
}

// TestALeavingClientHandsNothingOver: a process continues its work when the client that wants
// to replace it leaves, and daemon restart --now does not wait.
func TestALeavingClientHandsNothingOver(t *testing.T) {
	t.Parallel()
	h, dir := newHousehold(t), t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"while ! [ -e go ]; do sleep 0.05; done\"}}]}\n"+
		"  - {calls: [{name: run_command, arguments: {command: \"echo x >> effects\"}}]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	run := start(t, h.env(), "run", "--workspace", dir, "--yolo", "--model", "script:"+script, "--run-id", "busy", "--output", "jsonl", "work")
	run.until(is("tool.call"))
	former := h.pid()
	restart := start(t, h.env(), "daemon", "restart")
	restart.printed("busy runs while")
	if err := restart.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := restart.wait(); code == 0 {
		t.Error("a restart that was broken off ends with 0")
	}
	eventually(t, "the end of the successor", func() bool { return len(processes(t, h.home, "--replace")) == 0 })
	write(t, dir, "go", "")
	if code, _, stderr := run.wait(); code != 0 || h.pid() != former {
		t.Errorf("exit %d, process %d\n%s", code, h.pid(), stderr)
	}
	if raw, _ := os.ReadFile(filepath.Join(dir, "effects")); string(raw) != "x\n" {
		t.Errorf("effects %q", raw)
	}
	if err := os.Remove(filepath.Join(dir, "go")); err != nil {
		t.Fatal(err)
	}
	slow := start(t, h.env(), "run", "--workspace", dir, "--yolo", "--model", "script:"+script, "--run-id", "slow", "--output", "jsonl", "work")
	slow.until(is("tool.call"))
	now := start(t, h.env(), "daemon", "restart", "--now")
	now.printed("still does")
	write(t, dir, "go", "")
	if code, _, stderr := now.wait(); code != 0 || h.pid() == former {
		t.Errorf("restart --now: exit %d, process %d\n%s", code, h.pid(), stderr)
	}
	if code, _, stderr := slow.wait(); code != 0 {
		t.Errorf("the run: exit %d\n%s", code, stderr)
	}
}

// processes returns the processes of a home whose command line has a word.
func processes(t *testing.T, home, word string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, dir := range paths {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have ended
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if strings.Contains(string(line), word) && strings.Contains(string(environ), "HOME="+home) {
			found = append(found, dir)
		}
	}
	return found
}
