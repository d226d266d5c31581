//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// place is a data directory with a workspace and a script.
type place struct {
	data, workspace, script string
}

func newPlace(t *testing.T, script string) place {
	t.Helper()
	dir := t.TempDir()
	p := place{filepath.Join(dir, "data"), filepath.Join(dir, "ws"), filepath.Join(dir, "script.yaml")}
	if err := os.Mkdir(p.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.script, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) run(args ...string) []string {
	return append([]string{"run", "--data", p.data, "--workspace", p.workspace, "--model", "script:" + p.script}, args...)
}

// asking lets commands have network, so that they ask at every level of confinement.
const asking = "sandbox: {network: all}\n"

// runAsking is run for an agent whose commands ask.
func (p place) runAsking(t *testing.T, args ...string) []string {
	t.Helper()
	return p.run(append(p.agent(t, asking), args...)...)
}

const (
	finishes = `turns:
  - {text: Looking., calls: [{name: list_directory, arguments: {}}]}
  - {text: All seen., calls: [{name: work_complete, arguments: {summary: Nothing to do.}}]}
  - {text: Again., calls: [{name: work_complete, arguments: {summary: Still nothing.}}]}
`
	asks = `turns:
  - {text: I have to run it., calls: [{name: run_command, arguments: {command: echo hello > hello.txt}}]}
  - {calls: [{name: work_complete, arguments: {summary: It ran.}}]}
`
	thinks = `turns:
  - {text: Looking., calls: [{name: list_directory, arguments: {}}]}
  - {delay: 30s, text: Slow., calls: [{name: work_complete, arguments: {summary: Done.}}]}
`
)

func result(t *testing.T, out string) (r struct {
	RunID  string `json:"run_id"`
	Status string
	Reason struct{ Kind string }
	Answer string
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return r
}

func TestLocalRun(t *testing.T) {
	p := newPlace(t, finishes)
	got := call(t, nil, "", p.run("--run-id", "r", "--output", "json", "look")...)
	if got.code != 0 || result(t, got.out).Status != "DONE" || result(t, got.out).Answer != "All seen." {
		t.Fatalf("%+v", got)
	}
	// The same run again is not run again.
	if got := call(t, nil, "", p.run("--run-id", "r", "--output", "json", "look")...); got.code != 0 || !strings.Contains(got.err, "already exists") {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", p.run("--run-id", "r", "elsewhere")...); got.code != 1 || strings.Count(got.err, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "resume", "r", "--data", p.data); got.code != 1 || !strings.Contains(got.err, "harness send r --data") {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "list", "--data", p.data, "--status", "done"); got.code != 0 || !strings.Contains(got.out, "DONE agent_done") {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "watch", "r", "--data", p.data, "--output", "jsonl"); got.code != 0 || !strings.Contains(got.out, `"tool.call"`) {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "show", "r", "--data", p.data, "--conversation"); got.code != 0 || !strings.Contains(got.out, "All seen.") {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "run", "--data", p.data, "--continue", "r", "--output", "json", "again"); got.code != 0 || result(t, got.out).Answer != "Again." {
		t.Errorf("%+v", got)
	}
}

func TestLocalApproval(t *testing.T) {
	p := newPlace(t, asks)
	got := call(t, nil, "", p.runAsking(t, "--run-id", "r", "go")...)
	if got.code != 4 || !strings.Contains(got.err, "harness approve r ") || got.out != "" {
		t.Fatalf("%+v", got)
	}
	if got := call(t, nil, "", "approve", "r", "--data", p.data); got.code != 0 || !strings.Contains(got.err, "harness resume r --data") {
		t.Fatalf("%+v", got)
	}
	if got := call(t, nil, "", "approve", "r", "call_1_0", "--data", p.data); got.code != 1 {
		t.Errorf("a second answer: %+v", got)
	}
	if got := call(t, nil, "", "resume", "r", "--data", p.data); got.code != 0 || !strings.Contains(got.out, "It ran.") {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", p.runAsking(t, "--allow", "run_command", "go")...); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", p.runAsking(t, "--yolo", "go")...); got.code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAMessageStoredWhileNothingRuns(t *testing.T) {
	p := newPlace(t, finishes)
	if got := call(t, nil, "", p.run("--run-id", "r", "look")...); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := call(t, nil, "", "send", "r", "--data", p.data, "again"); got.code != 0 || !strings.Contains(got.err, "harness resume r --data") {
		t.Fatalf("%+v", got)
	}
	if got := call(t, nil, "", "resume", "r", "--data", p.data, "--output", "json"); got.code != 0 || result(t, got.out).Answer != "Again." {
		t.Errorf("%+v", got)
	}
}

func TestInterruptKillAndResume(t *testing.T) {
	p := newPlace(t, thinks)
	start := func(id string) (*exec.Cmd, *text) {
		cmd, errs := program(t, p.run("--run-id", id, "go")...), newText()
		cmd.Stderr = errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		errs.expect(t, "turn 2/50", 1)
		return cmd, errs
	}
	cmd, _ := start("killed")
	if got := call(t, nil, "", p.run("go")...); got.code != 1 || !strings.Contains(got.err, fmt.Sprintf("in use by process %d", cmd.Process.Pid)) {
		t.Errorf("a second run: %+v", got)
	}
	if got := call(t, nil, "", "list", "--data", p.data); got.code != 0 || !strings.Contains(got.out, "RUNNING") {
		t.Errorf("attached: %+v", got)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	// Another run interrupts what was left; so does a signal.
	cmd, errs := start("signalled")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd); code != 4 || !strings.Contains(errs.String(), "harness resume signalled --data "+p.data) {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
	if got := call(t, nil, "", "show", "signalled", "--data", p.data, "--output", "json"); got.code != 0 || result(t, got.out).Reason.Kind != "interrupted" {
		t.Errorf("%+v", got)
	}

	// Without the delay the run continues to its end.
	if err := os.WriteFile(p.script, []byte(strings.ReplaceAll(thinks, "30s", "0s")), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := call(t, nil, "", "resume", "killed", "--data", p.data, "--output", "json"); got.code != 0 || result(t, got.out).Status != "DONE" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "interrupt", "signalled", "--data", p.data); got.code != 0 || got.out != "signalled PARKED interrupted\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "cancel", "signalled", "--data", p.data); got.code != 0 || !strings.Contains(got.out, "CANCELLED") {
		t.Errorf("%+v", got)
	}
}
