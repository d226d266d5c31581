//go:build wire

package wire

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

const asking = `turns:
  - {calls: [{name: ask_user, arguments: {question: "Which line?"}}]}
  - {calls: [CALL]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// Calls that ask in every run, and the file that each writes. Nothing of a run with a token leaves the sandbox.
const (
	askingCommand = `{name: run_command, arguments: {command: 'echo line >> out', unconfined: to test}}`
	askingWrite   = `{name: write_file, arguments: {path: agent.yaml, content: "line\n"}}`
)

// TestOtherClientsDriveRuns has the clients of the TypeScript and the Python SDK start, answer, approve
// and cancel runs, through harness mcp serve and /mcp of a gateway. What a client repeats with a request id has no
// second effect. Approvals are refused to a client that may not approve, and are open after that.
func TestOtherClientsDriveRuns(t *testing.T) {
	harness := program.Path(t)
	interpreter, _ := python(t)
	for client, line := range map[string][]string{"TypeScript": {"node", "drive.mjs"}, "Python": {interpreter, "drive.py"}} {
		for transport, target := range map[string]func(t *testing.T, dir, workspace string) (model string, args []string){
			"pipes": func(_ *testing.T, dir, workspace string) (string, []string) {
				model := "script:" + filepath.Join(dir, "asking.yaml")
				return model, []string{"stdio", harness, "mcp", "serve", "--data", filepath.Join(dir, "data"), "--workspace", workspace, "--model", model}
			},
			"HTTP": func(t *testing.T, dir, workspace string) (string, []string) {
				const may, mayNot = "token-that-may-approve", "token-that-may-not-approve"
				write(t, filepath.Join(dir, "tokens"), may+" default name=person may=commands,scripts,approve roots="+workspace+"\n"+
					mayNot+" default name=model may=commands,scripts roots="+workspace+"\n")
				address := serveMesh(t, harness, dir, "--data", filepath.Join(dir, "data"), "--tokens", filepath.Join(dir, "tokens"), "--scripts", dir)
				return "script:asking.yaml", []string{"http", "http://" + address + "/mcp", mayNot, may}
			},
		} {
			t.Run(client+" over "+transport, func(t *testing.T) {
				t.Parallel()
				dir, workspace := t.TempDir(), t.TempDir()
				call, file := askingCommand, "out"
				if transport == "HTTP" {
					call, file = askingWrite, "agent.yaml"
				}
				write(t, filepath.Join(dir, "asking.yaml"), strings.Replace(asking, "CALL", call, 1))
				model, args := target(t, dir, workspace)
				cmd := exec.CommandContext(t.Context(), line[0], append([]string{line[1], workspace, model}, args...)...)
				cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir)
				drive(t, cmd, filepath.Join(workspace, file))
			})
		}
	}
}

// drive runs a client and checks its output, and the file that the approved call writes.
func drive(t *testing.T, cmd *exec.Cmd, file string) {
	t.Helper()
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	var seen struct {
		Tools, Kinds      []string
		Once              bool
		Refused           string
		Status, Cancelled json.RawMessage
	}
	if jerr := json.Unmarshal(out, &seen); err != nil || jerr != nil {
		t.Fatalf("%v, %v: %s\n%s", err, jerr, out, problems.String())
	}
	if want := []string{"answer", "cancel_run", "continue_run", "list_pending", "list_runs", "run_status", "start_run", "wait_run"}; !slices.Equal(seen.Tools, want) {
		t.Errorf("tools %v", seen.Tools)
	}
	if want := []string{"question", "approval", "approval", "question"}; !slices.Equal(seen.Kinds, want) || !seen.Once {
		t.Errorf("it waited for %v, one run: %v", seen.Kinds, seen.Once)
	}
	if !strings.Contains(seen.Refused, "approving here needs a token with the right approve") {
		t.Errorf("a client that may not approve got %q", seen.Refused)
	}
	if !strings.Contains(string(seen.Status), `"DONE"`) || !strings.Contains(string(seen.Cancelled), `"CANCELLED"`) {
		t.Errorf("the runs are %s and %s", seen.Status, seen.Cancelled)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "line\n" {
		t.Errorf("%q, %v: the approved call did not run once", data, err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
