package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestAgentsDoNotChooseWhatGitRuns: neither by commands, contract checks nor files. A person
// can allow a change of a file, and that one stays.
func TestAgentsDoNotChooseWhatGitRuns(t *testing.T) {
	t.Parallel()
	workspace, dir := t.TempDir(), t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = workspace
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q")
	ran := filepath.Join(dir, "ran")
	write(t, workspace, "evil", "#!/bin/sh\ntouch "+ran+"\n")
	if err := os.Chmod(filepath.Join(workspace, "evil"), 0o755); err != nil {
		t.Fatal(err)
	}
	agent := write(t, dir, "agent.yaml", "tools:\n  - {name: run_command, policy: allow}\ncontract: contract.yaml\n")
	write(t, dir, "contract.yaml", "required_outputs:\n  - {id: tests, description: The tests pass, predicate: {type: COMMAND_SUCCEEDS, command: make test}}\n")
	server := modeltest.NewServer(t,
		calls(call("configure", "run_command", `{"command":"git config core.fsmonitor ./evil; cp evil .git/hooks/post-index-change"}`)),
		calls(call("make", "write_file", `{"path":"Makefile","content":"test:\n\tgit config core.fsmonitor ./evil\n"}`)),
		calls(call("allowed", "write_file", `{"path":".git/config","content":"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\teditor = vi\n"}`)),
		complete)
	env := environment("OPENAI_BASE_URL=" + server.BaseURL())
	home := newHome(t)
	code, stdout, _ := home.start(env, "run", "--run-id", "r1", "--workspace", workspace, "--model", "openai:m", "--agent", agent, "--output", "json", "go").wait()
	if result := object(t, stdout); code != 4 || result["status"] != "PARKED" || result["reason"].(map[string]any)["kind"] != "approval" {
		t.Fatalf("exit %d, %v", code, result)
	}
	if code, _, stderr := home.start(env, "approve", "r1", "allowed").wait(); code != 0 {
		t.Fatalf("approve: exit %d\n%s", code, stderr)
	}
	code, stdout, _ = home.carryOn(env, "r1")
	if result := object(t, stdout); code != 0 || result["status"] != "DONE" {
		t.Errorf("resume: exit %d, %v", code, result)
	}
	config, err := os.ReadFile(filepath.Join(workspace, ".git/config"))
	if err != nil || !strings.Contains(string(config), "editor = vi") || strings.Contains(string(config), "evil") {
		t.Errorf("the configuration is %q, %v", config, err)
	}
	requests := server.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "core.fsmonitor in .git/config") || !strings.Contains(last, "the hook .git/hooks/post-index-change") {
		t.Errorf("the model does not know: %s", last)
	}
	git("status")
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program of the agent ran")
	}
}
