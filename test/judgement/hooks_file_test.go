package judgement

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hooksCommandLine runs the agent of a file by the command line, in the workspace of r,
// and gives its exit code and what it said.
func (r *run) hooksCommandLine(agent string) (code int, said string) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(agent), 0o600); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(harness, "run", "--server", address, "--workspace", r.dir, "--agent", file, "--model", "openai:"+r.id, "--run-id", r.id, "--yolo", "Do the task.")
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return 0, string(out)
}

// TestHooksOfAnAgentFileNeedNoCode: a rule, a service and a command that a file names
// stand in the way of three calls, and of the first stop.
func TestHooksOfAnAgentFileNeedNoCode(t *testing.T) {
	t.Parallel()
	r := prepare(t, hooksScript(calls(hooksWrite("by-rule.txt", "1"), hooksWrite("by-service.txt", "2"), hooksWrite("by-command.txt", "3"), hooksWrite("free.txt", "4"))))
	service := hooksServe(t, nil)
	r.write("guard.sh", `if grep -q by-command.txt; then echo "the command says no" >&2; exit 2; fi`)
	code, said := r.hooksCommandLine(fmt.Sprintf(`
name: guarded
instructions: Do it.
hooks:
  - {topic: before_tool_call, cel: "tool == 'write_file' && args.path == 'by-rule.txt'", action: deny, reason: "the rule says no"}
  - {topic: before_tool_call, tools: [write_file], command: sh guard.sh}
  - {id: audit, topic: after_tool_call, grpc: "%s", on_failure: closed, timeout: 2s}
  - {topic: agent_stop, cel: "turn == 2", action: block, reason: "once more"}
`, service.addr))
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, said)
	}
	s := r.rest()
	s.want("DONE agent_done accepted")
	if s.exists("by-rule.txt") || s.exists("by-command.txt") || !s.exists("by-service.txt") || !s.exists("free.txt") {
		t.Error("what was denied ran, or what was not did not")
	}
	hooksTold(t, s, 1, "the rule says no", "the command says no")
	hooksTold(t, s, 2, "once more")
	if n := len(service.of(hooksAfterCall)); n != 4 {
		t.Errorf("the service was told of %d calls, want the 2 that were written and both ends", n)
	}
}

// TestHooksOfAnAgentFileThatCannotWorkAreNamedByTheirLine: nothing is started.
func TestHooksOfAnAgentFileThatCannotWorkAreNamedByTheirLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hook, says string }{
		"expression":  {`{topic: before_tool_call, cel: "args.path ==", action: deny}`, "agent.yaml:4"},
		"topic":       {`{topic: before_everything, command: "true"}`, "agent.yaml:4"},
		"unreachable": {`{topic: before_tool_call, grpc: "127.0.0.1:1"}`, "agent.yaml:4"},
		"action":      {`{topic: on_pause, cel: "true", action: deny}`, "agent.yaml:4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := prepare(t, hooksScript())
			code, said := r.hooksCommandLine("name: guarded\nhooks:\n  - {topic: agent_stop, command: \"true\"}\n  - " + c.hook + "\n")
			if code != 1 || !strings.Contains(said, c.says) {
				t.Errorf("exit %d, want 1 and %s:\n%s", code, c.says, said)
			}
			if len(r.model.requests) != 0 {
				t.Error("the model was asked")
			}
		})
	}
}
