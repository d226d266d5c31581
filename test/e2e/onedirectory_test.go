package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestTheHolderOfTheDirectoryIsNamed: a command that needs the data directory for itself names the
// flags that use the gateway of the process which has it, and these work.
func TestTheHolderOfTheDirectoryIsNamed(t *testing.T) {
	h, dir := newHousehold(t), t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	model := modeltest.NewServer(t, complete, complete, complete)
	model.Key = "sk-of-the-terminal"
	run := []string{"run", "--workspace", dir, "--model", "script:" + script, "--output", "json", "work"}
	if code, _, stderr := start(t, h.env(), run...).wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	script = "script:" + script
	for _, held := range [][]string{append(run, "--foreground"), append(run, "--data", h.data), {"mcp", "serve", "--model", script, "--data", h.data}} {
		code, _, stderr := start(t, h.env(), held...).wait()
		_, flags, found := strings.Cut(stderr, "use its gateway (")
		flags, _, _ = strings.Cut(flags, ")")
		if code != 1 || !found || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d\n%s", held, code, stderr)
		}
		env := h.env("OPENAI_API_KEY="+model.Key, "OPENAI_BASE_URL="+model.BaseURL()) // which the background process has not
		if code, _, stderr := start(t, env, append([]string{"run", "--workspace", dir, "--model", "openai:test-model", "work"}, strings.Fields(flags)...)...).wait(); code != 0 {
			t.Errorf("with %s: exit %d\n%s", flags, code, stderr)
		}
	}
}

// TestAServerTakesOverFromTheBackgroundProcess: harness serve waits until no command runs. The run at
// work, whose key only its terminal had, continues in the server, and so does the terminal that follows.
// Later runs join the server, which is not started again when it ends.
func TestAServerTakesOverFromTheBackgroundProcess(t *testing.T) {
	t.Parallel()
	h, dir := newHousehold(t), t.TempDir()
	const key = "sk-inherited-0123456789abcdef"
	model := modeltest.NewServer(t, calls(call("a", "run_command", `{"command":"while ! [ -e go ]; do sleep 0.05; done; echo $NAMED >> effects"}`)),
		calls(call("b", "run_command", `{"command":"echo $NAMED >> effects"}`)), complete)
	model.Key = key
	agent := write(t, dir, "agent.yaml", "sandbox: {env: [NAMED]}\n")
	run := start(t, h.env("OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+model.BaseURL(), "NAMED=inherited"), "run", "--agent", agent, "--workspace", dir, "--yolo",
		"--model", "openai:test-model", "--run-id", "busy", "--output", "jsonl", "work")
	run.until(is("tool.call"))
	former := h.pid()

	serve := start(t, h.env(), "serve", "--listen", "127.0.0.1:0")
	serve.printed(fmt.Sprintf("waiting to replace the background process %d", former))
	serve.printed("busy runs while ! [ -e go ]")
	write(t, dir, "go", "")
	serve.printed("ready role=gateway")
	if code, stdout, stderr := run.wait(); code != 0 || !strings.Contains(stdout, `"status":"DONE"`) {
		t.Errorf("the run: exit %d\n%s%s", code, tail(stdout), stderr)
	}
	if pid := serve.cmd.Process.Pid; h.pid() != pid {
		t.Errorf("process %d has the directory, want the server %d", h.pid(), pid)
	}
	if raw, _ := os.ReadFile(filepath.Join(dir, "effects")); string(raw) != "inherited\ninherited\n" {
		t.Errorf("effects %q", raw)
	}
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	if code, _, stderr := start(t, h.env(), "run", "--workspace", dir, "--model", "script:"+script, "--output", "json", "work").wait(); code != 0 {
		t.Errorf("a run that joins the server: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := start(t, h.env(), "serve", "--listen", "127.0.0.1:0").wait(); code != 1 || !strings.Contains(stderr, fmt.Sprintf("is in use by process %d (harness serve); stop it, use its gateway (--server ", serve.cmd.Process.Pid)) {
		t.Errorf("a second server: exit %d\n%s", code, stderr)
	}
	if err := serve.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := serve.wait(); code != 0 || h.started() != 1 {
		t.Errorf("the server: exit %d, %d background processes\n%s", code, h.started(), stderr)
	}
	for _, path := range filesWith(t, h.home, key) {
		t.Errorf("a key is in %s", path)
	}
}

// TestAServerThatCannotListenReplacesNothing: the background process works on.
func TestAServerThatCannotListenReplacesNothing(t *testing.T) {
	t.Parallel()
	h, dir := newHousehold(t), t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"while ! [ -e go ]; do sleep 0.05; done\"}}]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	run := start(t, h.env(), "run", "--workspace", dir, "--yolo", "--model", "script:"+script, "--output", "jsonl", "work")
	run.until(is("tool.call"))
	former := h.pid()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	if code, _, stderr := start(t, h.env(), "serve", "--listen", taken.Addr().String()).wait(); code != 1 || !strings.Contains(stderr, "--listen: ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	write(t, dir, "go", "")
	if code, _, stderr := run.wait(); code != 0 || h.pid() != former {
		t.Errorf("exit %d, process %d, want %d\n%s", code, h.pid(), former, stderr)
	}
}

// TestMCPServeOutlivesTheBackgroundProcess: its calls join the next process, also a server.
func TestMCPServeOutlivesTheBackgroundProcess(t *testing.T) {
	t.Parallel()
	h, dir := newHousehold(t), t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	in, out := io.Pipe()
	p := startWith(t, harness, h.env(), in, "mcp", "serve", "--workspace", dir, "--model", "script:"+script)
	t.Cleanup(func() { _ = out.Close() })
	id := 0
	ask := func(method string, params any) map[string]any {
		t.Helper()
		id++
		raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(out, "%s\n", raw); err != nil {
			t.Fatal(err)
		}
		return p.until(func(e map[string]any) bool { return e["id"] == float64(id) })
	}
	list := func(when string) {
		t.Helper()
		if text := fmt.Sprint(ask("tools/call", map[string]any{"name": "list_runs", "arguments": map[string]any{}})); strings.Contains(text, "isError:true") || !strings.Contains(text, "known") {
			t.Errorf("%s: %s", when, text)
		}
	}
	ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	if code, _, stderr := start(t, h.env(), "run", "--workspace", dir, "--run-id", "known", "--model", "script:"+script, "work").wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	list("beside the run")
	former := h.kill()
	list("after a kill")
	if h.pid() == former {
		t.Error("no other process has the directory")
	}
	serve := start(t, h.env(), "serve", "--listen", "127.0.0.1:0")
	serve.printed("ready role=gateway")
	list("at the server")
}

// TestARunOutlivesTheProcessThatItHasJoined: a run that has joined a run with --foreground, or a server,
// continues in a background process when that process ends, and its terminal follows it there.
func TestARunOutlivesTheProcessThatItHasJoined(t *testing.T) {
	for name, args := range map[string][]string{"foreground": {"run", "--foreground", "--yolo", "--output", "jsonl"}, "server": {"serve", "--listen", "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, dir := newHousehold(t), t.TempDir()
			script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"while ! [ -e go ]; do sleep 0.05; done; echo x >> effects\"}}]}\n"+
				"  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
			if name == "foreground" {
				args = append(args, "--workspace", t.TempDir(), "--model", "script:"+script, "work")
			}
			holder := start(t, h.env(), args...)
			eventually(t, "the holder", func() bool { return h.pid() == holder.cmd.Process.Pid })
			run := start(t, h.env(), "run", "--workspace", dir, "--yolo", "--model", "script:"+script, "--output", "jsonl", "work")
			run.until(is("tool.call"))
			if err := holder.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			run.printed("ended; another one continues the run")
			write(t, dir, "go", "")
			if code, _, stderr := run.wait(); code != 0 {
				t.Errorf("exit %d\n%s", code, stderr)
			}
		})
	}
}
