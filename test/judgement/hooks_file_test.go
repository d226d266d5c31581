package judgement

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"
)

// hooksCommandLine runs the agent of a file by the command line, in the workspace of r,
// and gives its exit code and what it said.
func hooksCommandLine(r *live.Run, agent string) (code int, said string) {
	r.T.Helper()
	file := filepath.Join(r.T.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(agent), 0o600); err != nil {
		r.T.Fatal(err)
	}
	cmd := live.Command(r.T, "run", "--workspace", r.Dir, "--agent", file, "--model", "openai:"+r.ID, "--run-id", r.ID, "--yolo", "Do the task.")
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		r.T.Fatal(err)
	}
	return 0, string(out)
}

// TestHooksOfAnAgentFileNeedNoCode: a rule, a service and a command that a file names
// deny three calls and block the first stop.
func TestHooksOfAnAgentFileNeedNoCode(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, hooksScript(live.Calls(hooksWrite("by-rule.txt", "1"), hooksWrite("by-service.txt", "2"), hooksWrite("by-command.txt", "3"), hooksWrite("free.txt", "4"))))
	service := hooksServe(t, nil)
	r.Write("guard.sh", `if grep -q by-command.txt; then echo "the command says no" >&2; exit 2; fi`)
	code, said := hooksCommandLine(r, fmt.Sprintf(`
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
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	if s.Exists("by-rule.txt") || s.Exists("by-command.txt") || !s.Exists("by-service.txt") || !s.Exists("free.txt") {
		t.Error("what was denied ran, or what was not did not")
	}
	hooksTold(t, s, 1, "the rule says no", "the command says no")
	hooksTold(t, s, 2, "once more")
	if n := len(service.of(hooksAfterCall)); n != 4 {
		t.Errorf("the service got %d events, want those of 2 calls and both stops", n)
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
			r := live.Prepare(t, hooksScript())
			code, said := hooksCommandLine(r, "name: guarded\nhooks:\n  - {topic: agent_stop, command: \"true\"}\n  - "+c.hook+"\n")
			if code != 1 || !strings.Contains(said, c.says) {
				t.Errorf("exit %d, want 1 and %s:\n%s", code, c.says, said)
			}
			if len(r.Model.Requests) != 0 {
				t.Error("the model was called")
			}
		})
	}
}
