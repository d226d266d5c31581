package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestApprovalsByRuleAndWithChangedArguments: a rule that a person has read allows later
// commands that it fits and no others, and a changed call runs as changed, which its result
// says.
func TestApprovalsByRuleAndWithChangedArguments(t *testing.T) {
	workspace, home := t.TempDir(), newHome(t)
	script := write(t, t.TempDir(), "script.yaml", `turns:
  - {calls: [{id: first, name: run_command, arguments: {command: 'echo 1 >/dev/null'}}]}
  - {calls: [{id: second, name: run_command, arguments: {command: 'echo 2 && echo 3'}}]}
  - {calls: [{id: third, name: run_command, arguments: {command: 'echo 4; touch harm'}}]}
  - {when: {last_contains: "calm"}, calls: [{name: work_complete, arguments: {summary: changed}}]}
`)
	agent := write(t, t.TempDir(), "agent.yaml", "tools: [{name: run_command, policy: ask}]\n")
	run := func(want int, stdin string, args ...string) (stdout, stderr string) {
		t.Helper()
		p := home.start(environment(), args...)
		code, stdout, stderr := p.wait()
		if code != want {
			t.Fatalf("%v: exit %d\n%s\n%s", args, code, stdout, stderr)
		}
		return stdout, stderr
	}
	run(4, "", "run", "--run-id", "r1", "--workspace", workspace, "--model", "script:"+script, "--agent", agent, "--output", "jsonl", "go")
	if stdout, _ := run(0, "", "show", "r1"); !strings.Contains(stdout, "or with --rule echo for later calls too") {
		t.Errorf("no rule is proposed:\n%s", stdout)
	}
	if _, stderr := run(1, "", "approve", "r1", "--rule", "touch"); !strings.Contains(stderr, "do not fit the call") {
		t.Errorf("a rule that does not fit: %s", stderr)
	}
	_, stderr := run(4, "", "approve", "r1", "--rule", "echo", "--resume")
	if !strings.Contains(stderr, "allowed for this run: commands that begin with `echo`") || !strings.Contains(stderr, "harness approve r1 third") || strings.Contains(stderr, "harness approve r1 second") {
		t.Errorf("after the rule:\n%s", stderr)
	}
	arguments := write(t, t.TempDir(), "arguments.json", `{"command": "echo calm"}`)
	bad := write(t, t.TempDir(), "bad.json", `{"command": 7}`)
	if _, stderr := run(1, "", "approve", "r1", "--arguments", bad); !strings.Contains(stderr, "approval.arguments") || !strings.Contains(stderr, "command: got number") {
		t.Errorf("bad arguments: %s", stderr)
	}
	run(0, "", "approve", "r1", "--arguments", arguments, "--resume")
	if _, err := os.Stat(filepath.Join(workspace, "harm")); err == nil {
		t.Error("the call ran as the agent made it")
	}
	stdout, _ := run(0, "", "show", "r1", "--call", "third")
	if !strings.Contains(stdout, "The user changed this call before it ran. It ran with:") || !strings.Contains(stdout, `command: "echo calm"`) || !strings.Contains(stdout, "touch harm") {
		t.Errorf("the call and its result:\n%s", stdout)
	}
}
