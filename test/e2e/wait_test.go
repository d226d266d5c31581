package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledRunsWaitOn kills the process with all of its roles while a run waits: once it is
// parked, and in the middle of a check. The run that is resumed waits on and ends with what it
// waits for; the call next to the wait has its effect once, and no request is made for it.
func TestKilledRunsWaitOn(t *testing.T) {
	for name, check := range map[string]string{
		"parked":   "test -f go",
		"checking": "echo check >> checks; test -f go || { sleep 600; exit 1; }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workspace, home := t.TempDir(), newHome(t)
			script := write(t, t.TempDir(), "script.yaml", `turns:
  - {calls: [{name: run_command, arguments: {command: 'echo effect >> log'}}, {name: wait, arguments: {command: '`+check+`', deadline: 600}}]}
  - {when: {last_contains: "The command succeeded"}, calls: [{name: work_complete, arguments: {summary: waited}}]}
`)
			p := home.start(environment(), "run", "--run-id", "r1", "--workspace", workspace, "--model", "script:"+script,
				"--allow", "run_command", "--output", "jsonl", "wait")
			p.until(func(e map[string]any) bool { return e["type"] == "step.end" })
			if name == "checking" {
				eventually(t, "a check", func() bool { _, err := os.Stat(filepath.Join(workspace, "checks")); return err == nil })
			}
			home.crash(p)
			if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := home.finish("resume", "--output", "jsonl", "r1")
			if code != 0 || !strings.Contains(stdout, `"summary":"waited"`) {
				t.Fatalf("resume: exit %d\n%s\n%s", code, stdout, stderr)
			}
			log, err := os.ReadFile(filepath.Join(workspace, "log"))
			if err != nil || string(log) != "effect\n" {
				t.Errorf("the log is %q, %v", log, err)
			}
			if n := strings.Count(stdout, `"type":"model.response"`); n > 2 {
				t.Errorf("%d model calls", n)
			}
		})
	}
}
