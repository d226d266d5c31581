//go:build linux

package run_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
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
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Finishes)
	got := harnesstest.Call(t, nil, "", p.Run("--run-id", "r", "--output", "json", "look")...)
	if got.Code != 0 || result(t, got.Out).Status != "DONE" || result(t, got.Out).Answer != "All seen." {
		t.Fatalf("%+v", got)
	}
	// The same run again is not run again.
	if got := harnesstest.Call(t, nil, "", p.Run("--run-id", "r", "--output", "json", "look")...); got.Code != 0 || !strings.Contains(got.Err, "already exists") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", p.Run("--run-id", "r", "elsewhere")...); got.Code != 1 || strings.Count(got.Err, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "r", "--data", p.Data); got.Code != 1 || !strings.Contains(got.Err, "harness send r --data") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "list", "--data", p.Data, "--status", "done"); got.Code != 0 || !strings.Contains(got.Out, "DONE ") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "watch", "r", "--data", p.Data, "--output", "jsonl"); got.Code != 0 || !strings.Contains(got.Out, `"tool.call"`) {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "show", "r", "--data", p.Data, "--conversation"); got.Code != 0 || !strings.Contains(got.Out, "All seen.") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "run", "--data", p.Data, "--continue", "r", "--output", "json", "again"); got.Code != 0 || result(t, got.Out).Answer != "Again." {
		t.Errorf("%+v", got)
	}
}

func TestLocalApproval(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Asks)
	got := harnesstest.Call(t, nil, "", p.RunAsking(t, "--run-id", "r", "go")...)
	if got.Code != 4 || !strings.Contains(got.Err, "harness approve r ") || got.Out != "" {
		t.Fatalf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "approve", "r", "--data", p.Data); got.Code != 0 || !strings.Contains(got.Err, "harness resume r --data") {
		t.Fatalf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "approve", "r", "call_1_0", "--data", p.Data); got.Code != 1 {
		t.Errorf("a second answer: %+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "r", "--data", p.Data); got.Code != 0 || !strings.Contains(got.Out, "It ran.") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", p.RunAsking(t, "--allow", "run_command", "go")...); got.Code != 0 {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", p.RunAsking(t, "--yolo", "go")...); got.Code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAMessageStoredWhileNothingRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Finishes)
	if got := harnesstest.Call(t, nil, "", p.Run("--run-id", "r", "look")...); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "send", "r", "--data", p.Data, "again"); got.Code != 0 || !strings.Contains(got.Err, "harness resume r --data") {
		t.Fatalf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "r", "--data", p.Data, "--output", "json"); got.Code != 0 || result(t, got.Out).Answer != "Again." {
		t.Errorf("%+v", got)
	}
}

func TestInterruptKillAndResume(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Thinks)
	start := func(id string) (*exec.Cmd, *harnesstest.Text) {
		cmd, errs := harnesstest.Program(t, p.Run("--run-id", id, "go")...), harnesstest.NewText()
		cmd.Stderr = errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		errs.Expect(t, "turn 2/50", 1)
		return cmd, errs
	}
	cmd, _ := start("killed")
	if got := harnesstest.Call(t, nil, "", p.Run("go")...); got.Code != 1 || !strings.Contains(got.Err, fmt.Sprintf("in use by process %d", cmd.Process.Pid)) {
		t.Errorf("a second run: %+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "list", "--data", p.Data); got.Code != 0 || !strings.Contains(got.Out, "RUNNING") {
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
	if code := harnesstest.ExitCode(t, cmd); code != 4 || !strings.Contains(errs.String(), "harness resume signalled --data "+p.Data) {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
	if got := harnesstest.Call(t, nil, "", "show", "signalled", "--data", p.Data, "--output", "json"); got.Code != 0 || result(t, got.Out).Reason.Kind != "interrupted" {
		t.Errorf("%+v", got)
	}

	// Without the delay the run continues to its end.
	if err := os.WriteFile(p.Script, []byte(strings.ReplaceAll(harnesstest.Thinks, "30s", "0s")), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "killed", "--data", p.Data, "--output", "json"); got.Code != 0 || result(t, got.Out).Status != "DONE" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "interrupt", "signalled", "--data", p.Data); got.Code != 0 || got.Out != "signalled PARKED interrupted\n" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "cancel", "signalled", "--data", p.Data); got.Code != 0 || !strings.Contains(got.Out, "CANCELLED") {
		t.Errorf("%+v", got)
	}
}
