//go:build polyglot

package polyglot

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// patience bounds the whole test.
const patience = 2 * time.Minute

const script = `turns:
  - {text: "This takes long.", calls: [{name: run_command, arguments: {command: "echo begun >> out; sleep 300; echo ended >> out"}}]}
  - {text: "So I was stopped. I write it down.", calls: [{name: write_file, arguments: {path: notes.txt, content: "stopped once\n"}}]}
  - {calls: [{name: work_complete, arguments: {summary: "written down"}}]}
`

// command is a program of one of the languages. Its stderr is shown when the test fails.
func command(ctx context.Context, t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HARNESS_DATA=", "HARNESS_SERVER=", "PYTHONPATH="+filepath.Join(root(t), "clients", "python", "src"))
	var said bytes.Buffer
	cmd.Stderr = &said
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s %s said:\n%s", name, strings.Join(args, " "), said.String())
		}
	})
	return cmd
}

// output runs a program to its end and returns its stdout.
func output(ctx context.Context, t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := command(ctx, t, dir, name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// start starts a program and returns a stream of its; the program is killed at the end.
func start(t *testing.T, cmd *exec.Cmd, pipe func() (io.ReadCloser, error)) (*bufio.Scanner, func()) {
	t.Helper()
	out, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	return bufio.NewScanner(out), stop
}

// next reads lines until one has the prefix and returns its rest.
func next(t *testing.T, lines *bufio.Scanner, prefix string) string {
	t.Helper()
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			return rest
		}
	}
	t.Fatalf("it ended without a line that begins with %q", prefix)
	return ""
}

// root is the top of the tree.
func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// python is the interpreter that has what the client needs.
func python(ctx context.Context, t *testing.T) string {
	t.Helper()
	return filepath.Join(output(ctx, t, root(t), "clients/python/venv.sh"), "bin", "python")
}

// serve starts a mesh in one process and returns its gateway's address and the header
// with its key.
func serve(ctx context.Context, t *testing.T, harness string, args ...string) (gateway, key string) {
	t.Helper()
	dir := t.TempDir()
	cmd := command(ctx, t, dir, harness, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--scripts", os.TempDir()}, args...)...)
	cmd.Stderr = nil
	lines, _ := start(t, cmd, cmd.StderrPipe)
	gateway = next(t, lines, "ready role=gateway addr=")
	go func() {
		for lines.Scan() {
		}
	}()
	name, value, err := keytest.Header(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	return gateway, name + ": " + value
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestARunPassesThroughFourHands(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // where clients find the key
	dir, workspace := t.TempDir(), t.TempDir()
	harness, python := program.Path(t), python(ctx, t)
	typescript := filepath.Join(root(t), "clients", "typescript")
	output(ctx, t, typescript, "./modules.sh")
	output(ctx, t, typescript, "node_modules/.bin/tsc")
	gateway, key := serve(ctx, t, harness)

	// Python starts it, sees it at work, and goes without a word.
	begin := command(ctx, t, dir, python, write(t, filepath.Join(dir, "begin.py"), begin), gateway, workspace, "script:"+write(t, filepath.Join(dir, "script.yaml"), script))
	lines, stop := start(t, begin, begin.StdoutPipe)
	run := next(t, lines, "run ")
	next(t, lines, "tool.call")
	stop()

	// TypeScript watches it.
	events := filepath.Join(dir, "events.jsonl")
	watcher := command(ctx, t, dir, "node", filepath.Join(typescript, "dist", "examples", "watcher.js"), run, "--server", gateway, "--into", events)
	watched, _ := start(t, watcher, watcher.StdoutPipe)
	seen := func(name string) {
		t.Helper()
		for watched.Scan() {
			if strings.HasSuffix(watched.Text(), " "+name) {
				return
			}
		}
		t.Fatalf("the watcher never saw %s", name)
	}
	seen("tool.call")

	// Curl stops it: the watcher sees that, and nothing of the command is left.
	out := output(ctx, t, dir, "curl", "-sS", "--fail-with-body", "-X", "POST", "-H", key, "-H", "Content-Type: application/json",
		"-d", `{"reason":"somebody wants to look first"}`, "http://"+gateway+"/v1/runs/"+run+"/interrupt")
	if !strings.Contains(out, "request_id") {
		t.Errorf("curl got %s", out)
	}
	seen("run.interrupted")

	// The command line resumes it and follows it to its end.
	out = output(ctx, t, dir, harness, "resume", run, "--server", gateway, "--output", "json")
	var result struct {
		Status   string `json:"status"`
		Accepted bool   `json:"accepted"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Status != "DONE" || !result.Accepted {
		t.Errorf("it ended as %s (%v)", out, err)
	}
	seen("session.complete")
	for path, want := range map[string]string{"out": "begun\n", "notes.txt": "stopped once\n"} {
		if got, err := os.ReadFile(filepath.Join(workspace, path)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
		}
	}

	// What TypeScript has seen is what HTTP and the command line tell.
	var ids []string
	kept, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(kept)) {
		ids = append(ids, identity(t, []byte(line)))
	}
	var told []string
	for line := range strings.Lines(output(ctx, t, dir, harness, "watch", run, "--server", gateway, "--output", "jsonl")) {
		told = append(told, identity(t, []byte(line)))
	}
	told = slices.DeleteFunc(told, func(id string) bool { return id == "" })
	if !slices.Equal(ids, told) {
		t.Errorf("TypeScript saw %v\nthe command line %v", ids, told)
	}
	var streamed []string
	for line := range strings.Lines(output(ctx, t, dir, "curl", "-sSN", "--fail-with-body", "-H", key, "http://"+gateway+"/v1/runs/"+run+"/events?until=now")) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if id := identity(t, []byte(data)); id != "" {
				streamed = append(streamed, id)
			}
		}
	}
	if !slices.Equal(ids, streamed) {
		t.Errorf("TypeScript saw %v\ncurl %v", ids, streamed)
	}
}

// identity returns the id of the event on a line; empty if it has none.
func identity(t *testing.T, line []byte) string {
	t.Helper()
	var event struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return event.ID
}

const begin = `
import asyncio, sys
from harnessmesh import Client, Event, pb

async def main(gateway: str, workspace: str, model: str) -> None:
    async with Client.connect(gateway) as client:
        run = await client.start(
            "Try it.", model=model, workspace=workspace,
            config=pb.LoopConfig(tools=pb.ToolConfig(yolo=True)),
        )
        print("run", run.id, flush=True)
        async for update in run.events():
            if isinstance(update, Event):
                print(update.name, flush=True)

asyncio.run(main(*sys.argv[1:]))
`

const unchecked = `turns:
  - {text: "Writing.", calls: [{name: write_file, arguments: {path: a.txt, content: "1"}}]}
  - {text: "Done.", calls: [{name: work_complete, arguments: {summary: "written"}}]}
  - {text: "Right.", calls: [{name: run_command, arguments: {command: "cat a.txt"}}]}
  - {text: "Done.", calls: [{name: work_complete, arguments: {summary: "written and looked at"}}]}
`

// TestAnExecutorInPythonTakesPartInTheLoop: the example executor sends an agent back
// that has not looked at its work.
func TestAnExecutorInPythonTakesPartInTheLoop(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // where clients find the key
	dir, harness := t.TempDir(), program.Path(t)
	// It needs the gateway's address, and the bridge needs its: the gateway gets a port
	// that was free when it was chosen.
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	reviewer := command(ctx, t, dir, python(ctx, t), filepath.Join(root(t), "examples", "reviewer", "reviewer.py"), "--listen", "127.0.0.1:0", "--gateway", at)
	lines, _ := start(t, reviewer, reviewer.StdoutPipe)
	var hello struct {
		Listening string `json:"listening"`
	}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &hello) != nil {
		t.Fatalf("the reviewer did not start: %q", lines.Text())
	}
	gateway, _ := serve(ctx, t, harness, "--roles", "all,bridge", "--executor", "reviewer", "--target", hello.Listening, "--listen", at)
	out := output(ctx, t, dir, harness, "run", "--server", gateway, "--workspace", t.TempDir(), "--yolo", "--output", "json",
		"--model", "script:"+write(t, filepath.Join(dir, "script.yaml"), unchecked), "--workflow", "repair,compaction,turn,reviewer,stopdecision", "Write a 1.")
	var result struct {
		Status  string `json:"status"`
		Turns   int    `json:"turn_count"`
		Summary string `json:"summary"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Status != "DONE" || result.Turns != 4 || result.Summary != "written and looked at" {
		t.Errorf("it ended as %s (%v)", out, err)
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), `"sent_back": 1`) {
		t.Errorf("the reviewer said %q", lines.Text())
	}
}

const noting = `turns:
  - {calls: [{name: py__add_note, arguments: {text: "from Python"}}, {name: ts__add_note, arguments: {text: "from TypeScript"}}, {name: go__add_note, arguments: {text: "from Go"}}]}
  - {calls: [{name: py__read_notes, arguments: {}}, {name: ts__read_notes, arguments: {}}, {name: go__read_notes, arguments: {}}]}
  - {calls: [{name: work_complete, arguments: {summary: "noted"}}]}
`

// TestToolServicesInThreeLanguages: a run calls the tools of the examples in Python, TypeScript and
// Go. The first is the operator's, the others are those of the run. A service that is away fails
// its call, and the run continues.
func TestToolServicesInThreeLanguages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // where clients find the key
	dir, harness := t.TempDir(), program.Path(t)
	typescript := filepath.Join(root(t), "clients", "typescript")
	output(ctx, t, typescript, "./modules.sh")
	output(ctx, t, typescript, "node_modules/.bin/tsc")
	goService := filepath.Join(dir, "toolservice")
	output(ctx, t, root(t), "go", "build", "-o", goService, "./examples/toolservice")
	address, stop := map[string]string{}, map[string]func(){}
	for name, program := range map[string][]string{
		"py": {python(ctx, t), filepath.Join(root(t), "examples", "toolservice", "notes.py")},
		"ts": {"node", filepath.Join(typescript, "dist", "examples", "notesservice.js")},
		"go": {goService},
	} {
		cmd := command(ctx, t, dir, program[0], append(program[1:], "--listen", "127.0.0.1:0", "--file", filepath.Join(dir, name))...)
		lines, kill := start(t, cmd, cmd.StdoutPipe)
		var hello struct {
			Listening string `json:"listening"`
		}
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &hello) != nil {
			t.Fatalf("%s did not start: %q", name, lines.Text())
		}
		address[name], stop[name] = hello.Listening, kill
	}
	gateway, _ := serve(ctx, t, harness, "--tool-service", "py="+address["py"])
	run := func() map[string][]string {
		t.Helper()
		out := output(ctx, t, dir, harness, "run", "--server", gateway, "--workspace", t.TempDir(), "--yolo", "--output", "jsonl",
			"--model", "script:"+write(t, filepath.Join(dir, "noting.yaml"), noting),
			"--tool-service", "ts="+address["ts"]+",trust=hints", "--tool-service", "go="+address["go"], "Note it.")
		events := map[string][]string{}
		for line := range strings.Lines(out) {
			var e struct {
				Type   string
				Status string
				Data   struct{ Tool, Result, Error, Status string }
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			events[e.Type] = append(events[e.Type], e.Data.Tool+" "+e.Data.Result+e.Data.Error+e.Data.Status+e.Status)
		}
		return events
	}
	events := run()
	for _, want := range []string{"py__read_notes [data from the server py] [\"from Python\"]", "ts__read_notes [data from the server ts] [\"from TypeScript\"]", "go__read_notes [data from the server go] from Go"} {
		if !slices.Contains(events["tool.result"], want) {
			t.Errorf("%q is not among %q, errors %q", want, events["tool.result"], events["tool.error"])
		}
	}
	for name, want := range map[string]string{"py": "from Python\n", "ts": "from TypeScript\n", "go": "from Go\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	stop["py"]()
	events = run()
	if len(events["tool.error"]) == 0 || !slices.Contains(events["tool.result"], "go__read_notes [data from the server go] from Go\nfrom Go") {
		t.Errorf("without Python: errors %q, results %q", events["tool.error"], events["tool.result"])
	}
}
