package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// has reports whether a model may call a tool.
func has(r *modeltest.Request, tool string) bool {
	return slices.ContainsFunc(r.Tools, func(t modeltest.RequestTool) bool { return t.Name == tool })
}

// answered counts the results of calls in a request.
func answered(r *modeltest.Request) (n int) {
	for _, m := range r.Messages {
		if m.Role == "tool" {
			n++
		}
	}
	return n
}

// TestSubAgentsHaveTheEnvironmentOfTheirRoot: sub-agents that a call, delegate, a graph or the
// background starts reach the model with the key of their root's terminal, and their commands have
// its PATH, two levels down too.
func TestSubAgentsHaveTheEnvironmentOfTheirRoot(t *testing.T) {
	h, dir, bin := newHousehold(t), t.TempDir(), t.TempDir()
	server := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
		if answered(r) > 0 {
			return complete
		}
		switch {
		case has(r, "helper"):
			return calls(call("a", "helper", `{"prompt":"one"}`), call("b", "delegate", `{"tasks":[{"id":"t","title":"T","agent":"helper","prompt":"two"}]}`),
				call("c", "reader", `{"prompt":"three","background":true}`))
		case has(r, "below"):
			return calls(call("d", "below", `{"prompt":"four"}`))
		case has(r, "run_command"):
			return calls(call("e", "run_command", `{"command":"interpreter"}`))
		}
		return complete
	})
	server.Key = "sk-of-the-terminal-0123456789"
	if err := os.WriteFile(filepath.Join(bin, "interpreter"), []byte("#!/bin/sh\necho x >> ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	agent := write(t, dir, "agent.yaml", `sandbox: {level: off}
agents:
  - name: helper
    description: Helps.
    instructions: Help.
    agents: [{name: below, description: Helps., instructions: Help.}]
  - {name: reader, description: Reads., instructions: Read., read_only: true}
`)
	graph := write(t, dir, "graph.yaml", "tasks: [{id: g, title: G, agent: helper, prompt: five}]\n")
	if code, _, stderr := start(t, h.env(), "daemon", "restart").wait(); code != 0 { // by a terminal without key and PATH
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	env := append(h.env("OPENAI_API_KEY="+server.Key, "OPENAI_BASE_URL="+server.BaseURL()), "PATH="+bin+":"+os.Getenv("PATH"))
	code, stdout, stderr := start(t, env, "run", "--workspace", dir, "--agent", agent, "--graph", graph, "--yolo", "--model", "openai:test-model", "--output", "json", "work").wait()
	if ran, _ := os.ReadFile(filepath.Join(dir, "ran")); code != 0 || string(ran) != "x\nx\nx\n" {
		t.Errorf("exit %d, the program of the terminal ran as %q, want 3 times\n%s%s", code, ran, stdout, stderr)
	}
}

// TestATreeWhoseKeyIsGoneIsParked: a run whose sub-agent has lost its key ends its command with exit
// 4 and names the variable. A client that has the key continues the tree, by its root or by the
// sub-agent.
func TestATreeWhoseKeyIsGoneIsParked(t *testing.T) {
	h, dir := newHousehold(t), t.TempDir()
	server := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
		if answered(r) > 0 {
			return complete
		}
		return calls(call("a", "run_command", `{"command":"echo x >> ran"}`))
	})
	server.Key = "sk-of-the-terminal-0123456789"
	script := write(t, dir, "root.yaml", "turns:\n  - {calls: [{name: helper, arguments: {prompt: help}}]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	agent := write(t, dir, "agent.yaml", fmt.Sprintf("model: script:%s\ntools: [{name: run_command, policy: ask}]\nagents: [{name: helper, description: Helps., instructions: Help., model: \"openai:test-model\"}]\n", script))
	env := h.env("OPENAI_API_KEY="+server.Key, "OPENAI_BASE_URL="+server.BaseURL())
	for _, how := range []string{"root", "child"} {
		code, stdout, stderr := start(t, env, "run", "--workspace", dir, "--agent", agent, "--run-id", how, "--output", "json", "work").wait()
		if code != 4 || !strings.Contains(stdout, `"approval"`) {
			t.Fatalf("a run whose sub-agent asks: exit %d\n%s%s", code, stdout, stderr)
		}
		h.kill()
		code, stdout, stderr = start(t, h.env(), "approve", how).wait()
		if code != 0 {
			t.Fatalf("approve without the key: exit %d\n%s%s", code, stdout, stderr)
		}
		code, stdout, stderr = start(t, h.env(), "watch", how, "--output", "jsonl").wait()
		if code != 4 || !strings.Contains(stdout+stderr, "OPENAI_API_KEY") {
			t.Errorf("a run whose sub-agent has no key: exit %d\n%s%s", code, stdout, stderr)
		}
		resumed := how
		if how == "child" {
			_, stdout, _ = start(t, h.env(), "show", how, "--output", "json").wait()
			resumed, _ = object(t, stdout)["reason"].(map[string]any)["details"].(map[string]any)["run_id"].(string)
		}
		if code, stdout, stderr = start(t, env, "resume", resumed, "--output", "json").wait(); code != 0 {
			t.Errorf("resume %s with the key: exit %d\n%s%s", resumed, code, stdout, stderr)
		}
		if code, stdout, stderr = start(t, env, "watch", how, "--output", "jsonl").wait(); code != 0 {
			t.Errorf("the root after resume %s: exit %d\n%s%s", resumed, code, stdout, stderr)
		}
	}
}

// TestResumeContinuesTheWholeTree: the background process is killed in the first turn of sub-agents.
// A resume of each root continues its tree, and a root that a terminal follows continues by itself:
// one level down, two, in a worktree, and next to a sub-agent that waits for a person.
func TestResumeContinuesTheWholeTree(t *testing.T) {
	h := newHousehold(t)
	const worker, asker = "{name: worker, description: W., instructions: W., workspace: worktree, model: \"script:%[1]s/worker.yaml\"}", "{name: asker, description: A., instructions: A., model: \"script:%[1]s/asker.yaml\"}"
	shared := strings.Replace(worker, "worktree", "shared", 1)
	trees := map[string]struct{ agents, calls string }{
		"one":      {shared, "{name: worker, arguments: {prompt: work}}"},
		"followed": {shared, "{name: worker, arguments: {prompt: work}}"},
		"two":      {"{name: lead, description: L., instructions: L., model: \"script:%[1]s/lead.yaml\", agents: [" + shared + "]}", "{name: lead, arguments: {prompt: lead}}"},
		"worktree": {worker, "{name: worker, arguments: {prompt: work}}"},
		"asks":     {worker + ", " + asker, "{name: asker, arguments: {prompt: ask}}, {name: worker, arguments: {prompt: work}}"},
	}
	clients, dirs := map[string]*process{}, map[string]string{}
	for run, tree := range trees {
		dir := t.TempDir()
		dirs[run] = dir
		repository(t, dir)
		turns := func(name, first string) {
			write(t, dir, name+".yaml", "turns:\n  - {calls: ["+first+"]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
		}
		turns("root", tree.calls)
		turns("lead", "{name: worker, arguments: {prompt: work}}")
		turns("worker", fmt.Sprintf("{name: run_command, arguments: {command: \"echo x >> %s/began; sleep 60\"}}", dir))
		turns("asker", "{name: write_file, arguments: {path: answer, content: x}}")
		agent := write(t, dir, "agent.yaml", fmt.Sprintf("model: script:%[1]s/root.yaml\nsandbox: {level: off}\ntools: [{name: write_file, policy: ask}]\nagents: ["+tree.agents+"]\n", dir))
		clients[run] = start(t, h.env(), "run", "--workspace", dir, "--agent", agent, "--allow", "run_command", "--run-id", run, "--output", "json", "work")
	}
	for run, dir := range dirs {
		eventually(t, "the first turn below "+run, func() bool { _, err := os.Stat(filepath.Join(dir, "began")); return err == nil })
	}
	_, listed, _ := start(t, h.env(), "list", "--output", "json").wait()
	if runs, _ := object(t, listed)["runs"].([]any); len(runs) != len(trees) {
		t.Errorf("%d runs are listed in their first turns, want the roots:\n%s", len(runs), listed)
	}
	for run, c := range clients {
		if run != "followed" {
			_ = c.cmd.Process.Kill()
			c.wait()
		}
	}
	h.kill()
	for run := range trees {
		if run == "followed" {
			if code, stdout, stderr := clients[run].wait(); code != 0 {
				t.Errorf("the followed run: exit %d\n%s%s", code, stdout, stderr)
			}
			continue
		}
		code, stdout, stderr := start(t, h.env(), "resume", run, "--output", "json").wait()
		if run == "asks" {
			if code != 4 || !strings.Contains(stdout, `"tool":"write_file"`) {
				t.Errorf("resume %s: exit %d\n%s%s", run, code, stdout, stderr)
			}
			if code, stdout, stderr = start(t, h.env(), "approve", run).wait(); code == 0 {
				code, stdout, stderr = start(t, h.env(), "watch", run, "--output", "jsonl").wait()
			}
		}
		if code != 0 {
			t.Errorf("resume %s: exit %d\n%s%s", run, code, stdout, stderr)
		}
	}
}

// repository makes a folder a git repository with a commit.
func repository(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, environment()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// TestResumeOfATreeInThisProcess: as TestResumeContinuesTheWholeTree, where the process that is
// killed and the one that resumes have the mesh in them.
func TestResumeOfATreeInThisProcess(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	root := write(t, dir, "root.yaml", "turns:\n  - {calls: [{name: worker, arguments: {prompt: work}}]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	below := write(t, dir, "worker.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"touch began; sleep 60\"}}]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	agent := write(t, dir, "agent.yaml", fmt.Sprintf("model: script:%s\nagents: [{name: worker, description: W., instructions: W., model: \"script:%s\"}]\n", root, below))
	p := start(t, environment(), "run", "--data", data, "--workspace", dir, "--agent", agent, "--allow", "run_command", "--run-id", "root", "--output", "json", "work")
	eventually(t, "the first turn of the sub-agent", func() bool { _, err := os.Stat(filepath.Join(dir, "began")); return err == nil })
	_ = p.cmd.Process.Kill()
	p.wait()
	if code, stdout, stderr := finish(t, "resume", "root", "--data", data, "--output", "json"); code != 0 {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}
