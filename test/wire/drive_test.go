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
)

const asking = `turns:
  - {calls: [{name: ask_user, arguments: {question: "Which line?"}}]}
  - {calls: [{name: run_command, arguments: {command: 'echo line >> out', unconfined: to test}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestAnotherClientDrivesRuns has the client of the TypeScript SDK start, answer, approve and cancel
// runs through harness mcp serve.
func TestAnotherClientDrivesRuns(t *testing.T) {
	dir, workspace := t.TempDir(), t.TempDir()
	harness, script := filepath.Join(dir, "harness"), filepath.Join(dir, "asking.yaml")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", harness, "../../cmd/harness").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.WriteFile(script, []byte(asking), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "drive.mjs", harness, "mcp", "serve", "--approve",
		"--data", filepath.Join(dir, "data"), "--workspace", workspace, "--model", "script:"+script)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	var seen struct {
		Tools, Kinds      []string
		Once              bool
		Status, Cancelled json.RawMessage
	}
	if jerr := json.Unmarshal(out, &seen); err != nil || jerr != nil {
		t.Fatalf("%v, %v: %s\n%s", err, jerr, out, problems.String())
	}
	if want := []string{"answer", "cancel_run", "continue_run", "list_pending", "list_runs", "run_status", "start_run", "wait_run"}; !slices.Equal(seen.Tools, want) {
		t.Errorf("tools %v", seen.Tools)
	}
	if !slices.Equal(seen.Kinds, []string{"question", "approval"}) || !seen.Once {
		t.Errorf("it waited for %v, one run: %v", seen.Kinds, seen.Once)
	}
	if !strings.Contains(string(seen.Status), `"DONE"`) || !strings.Contains(string(seen.Cancelled), `"CANCELLED"`) {
		t.Errorf("%s\n%s", seen.Status, seen.Cancelled)
	}
	if data, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(data) != "line\n" {
		t.Errorf("%q, %v: the approved command did not run once", data, err)
	}
}
