package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOldRunsDoNotStartUnasked kills a run in the middle; a run of another goal
// on the same data directory leaves it parked, and it can still be resumed.
func TestOldRunsDoNotStartUnasked(t *testing.T) {
	t.Parallel()
	workspace, script := appending(t, 3)
	data := t.TempDir()
	old := start(t, environment(), "run", "--data", data, "--run-id", "old", "--workspace", workspace, "--model", "script:"+script,
		"--allow", "run_command", "--output", "jsonl", "append")
	old.until(func(e map[string]any) bool { return e["type"] == "tool.call" && e["turn_number"] == 2.0 })
	if err := old.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	old.wait()

	short := write(t, t.TempDir(), "short.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: short}}]}\n")
	if code, _, _ := finish(t, "run", "--data", data, "--workspace", t.TempDir(), "--model", "script:"+short, "--output", "json", "another"); code != 0 {
		t.Fatalf("the other run: exit %d", code)
	}
	_, stdout, _ := finish(t, "list", "--data", data, "--output", "json")
	for _, r := range object(t, stdout)["runs"].([]any) {
		run := r.(map[string]any)
		if run["run_id"] != "old" {
			continue
		}
		if reason, _ := run["reason"].(map[string]any); run["status"] != "PARKED" || reason["kind"] != "interrupted" {
			t.Errorf("the old run is %v", run)
		}
	}
	if code, stdout, _ := finish(t, "resume", "--data", data, "--output", "json", "old"); code != 0 {
		t.Errorf("resume: exit %d\n%s", code, stdout)
	}
}

// TestParkedRunsDoNotStartUnasked: neither a deadline that has passed nor an answer
// that was stored while nothing ran sets a run going in a process that is there for
// another one, even one that has lost its script; a resume continues it.
func TestParkedRunsDoNotStartUnasked(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, run := range []struct{ id, timeout string }{{"expired", "100ms"}, {"answered", "1h"}} {
		script := write(t, t.TempDir(), run.id+".yaml", `turns:
  - {calls: [{name: ask_user, arguments: {question: "Which colour?"}}]}
  - {calls: [{name: work_complete, arguments: {summary: painted}}]}
`)
		agent := write(t, t.TempDir(), "agent.yaml", "answer_timeout: "+run.timeout+"\n")
		if code, _, stderr := finish(t, "run", "--data", data, "--run-id", run.id, "--workspace", t.TempDir(), "--model", "script:"+script, "--agent", agent, "paint"); code != 4 {
			t.Fatalf("%s: exit %d\n%s", run.id, code, stderr)
		}
	}
	if code, _, stderr := finish(t, "answer", "--data", data, "answered", "blue"); code != 0 {
		t.Fatalf("answer: exit %d\n%s", code, stderr)
	}
	slow := write(t, t.TempDir(), "slow.yaml", `turns:
  - {calls: [{name: run_command, arguments: {command: "sleep 2"}}]}
  - {calls: [{name: work_complete, arguments: {summary: other}}]}
`)
	if code, _, stderr := finish(t, "run", "--data", data, "--workspace", t.TempDir(), "--model", "script:"+slow, "--allow", "run_command", "another"); code != 0 {
		t.Fatalf("the other run: exit %d\n%s", code, stderr)
	}
	_, stdout, _ := finish(t, "list", "--data", data, "--output", "json")
	for _, r := range object(t, stdout)["runs"].([]any) {
		run := r.(map[string]any)
		if id := run["run_id"]; (id == "expired" || id == "answered") && run["status"] != "PARKED" {
			t.Errorf("%s has moved: %v", id, run)
		}
	}
	for _, id := range []string{"expired", "answered"} {
		if code, stdout, stderr := finish(t, "resume", "--data", data, "--output", "json", id); code != 0 || object(t, stdout)["status"] != "DONE" {
			t.Errorf("resume %s: exit %d\n%s\n%s", id, code, stdout, stderr)
		}
	}
}

// TestSessionContinues sends a finished run another message: the model sees the
// first exchange, and the segment has its own turns.
func TestSessionContinues(t *testing.T) {
	t.Parallel()
	script := write(t, t.TempDir(), "script.yaml", `turns:
  - {calls: [{name: work_complete, arguments: {summary: first}}]}
  - {when: {last_contains: "and now the second"}, calls: [{name: work_complete, arguments: {summary: second}}]}
`)
	home := newHome(t)
	if code, _, _ := home.finish("run", "--run-id", "r1", "--workspace", t.TempDir(), "--model", "script:"+script, "--max-turns", "1", "one"); code != 5 {
		t.Errorf("at max_turns: exit %d, want 5", code)
	}
	code, stdout, _ := home.finish("run", "--continue", "r1", "--output", "jsonl", "and now the second")
	if code != 5 || !strings.Contains(stdout, `"summary":"second"`) {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	for kind, want := range map[string]int{"session.start": 2, "session.complete": 2} {
		_, all, _ := home.finish("watch", "--output", "jsonl", "r1")
		if got := strings.Count(all, `"type":"`+kind+`"`); got != want {
			t.Errorf("%s is there %d times, want %d", kind, got, want)
		}
	}
	if code, _, stderr := home.finish("resume", "r1"); code != 1 || !strings.Contains(stderr, "harness send") {
		t.Errorf("resume of a finished run: exit %d\n%s", code, stderr)
	}
}

// TestSilentAgent is nudged twice, refused three times, and then taken at its
// silence, as done and not accepted.
func TestSilentAgent(t *testing.T) {
	t.Parallel()
	script := write(t, t.TempDir(), "script.yaml", "turns:\n"+strings.Repeat("  - {text: I am done.}\n", 10))
	code, stdout, _ := newHome(t).finish("run", "--workspace", t.TempDir(), "--model", "script:"+script, "--output", "json", "be silent")
	result := object(t, stdout)
	if code != 5 || result["status"] != "DONE" || result["turn_count"] != 6.0 || result["accepted"] != false {
		t.Errorf("exit %d, %v", code, result)
	}
}

// TestServedMesh drives a run over the gateway of another process.
func TestServedMesh(t *testing.T) {
	t.Parallel()
	workspace, script := appending(t, 2)
	serve := start(t, environment(), "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--scripts", filepath.Dir(script))
	address := ""
	eventually(t, "the gateway", func() bool {
		serve.mu.Lock()
		defer serve.mu.Unlock()
		for _, line := range strings.Split(serve.stderr.String(), "\n") {
			if rest, ok := strings.CutPrefix(line, "ready role=gateway addr="); ok {
				address = rest
			}
		}
		return address != ""
	})
	code, stdout, _ := finish(t, "run", "--server", address, "--run-id", "r1", "--workspace", workspace, "--model", "script:"+script,
		"--allow", "run_command", "--output", "json", "append")
	if code != 0 || object(t, stdout)["accepted"] != true {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	if code, stdout, _ := finish(t, "list", "--server", address); code != 0 || !strings.Contains(stdout, "r1") {
		t.Errorf("list: exit %d\n%s", code, stdout)
	}
	if err := serve.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := serve.wait(); code != 0 {
		t.Errorf("serve: exit %d\n%s", code, stderr)
	}
}
