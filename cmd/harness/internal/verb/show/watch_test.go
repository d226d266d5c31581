//go:build linux

package show_test

import (
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// events are the ids of the events in lines of JSON, which must end with the
// result. Text must not come twice within a try.
func events(t *testing.T, lines string) (ids []string) {
	t.Helper()
	type try struct{ turn, attempt, try uint32 }
	shown := map[try]int{}
	last := ""
	for line := range strings.Lines(lines) {
		var l struct {
			Type, ID, Text string
			Turn           uint32 `json:"turn_number"`
			Attempt, Try   uint32
			Offset         int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch last = l.Type; l.Type {
		case "delta":
			at := try{l.Turn, l.Attempt, l.Try}
			if l.Offset != shown[at] {
				t.Errorf("text at %d after %d: %s", l.Offset, shown[at], line)
			}
			shown[at] += len(l.Text)
		case "result":
		default:
			ids = append(ids, l.ID)
		}
	}
	if last != "result" {
		t.Errorf("the last line is no result:\n%s", lines)
	}
	return ids
}

// A mesh that is killed and started again in mid-run costs its followers
// nothing: run and watch continue after the last event that they printed.
func TestFollowingAGatewayThatIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, strings.ReplaceAll(harnesstest.Thinks, "30s", "2s"))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	config := "XDG_CONFIG_HOME=" + t.TempDir() // where clients find the key
	start := func(args ...string) (cmd *exec.Cmd, out, errs *harnesstest.Text) {
		t.Helper()
		cmd, out, errs = harnesstest.Program(t, args...), harnesstest.NewText(), harnesstest.NewText()
		cmd.Env = append(cmd.Env, config)
		cmd.Stdout, cmd.Stderr = out, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, out, errs
	}
	serve := func() *exec.Cmd {
		t.Helper()
		cmd, _, errs := start("serve", "--data", p.Data, "--listen", address, "--takeover", "1s", "--scripts", filepath.Dir(p.Script))
		errs.Expect(t, "ready role=gateway", 1)
		return cmd
	}
	mesh := serve()
	run, runOut, runErr := start("run", "--server", address, "--workspace", p.Workspace, "--model", "script:"+p.Script, "--run-id", "r", "--output", "jsonl", "go")
	second := `"type":"step.start","id":"`
	runOut.Expect(t, second, 2)
	watch, watchOut, watchErr := start("watch", "r", "--server", address, "--output", "jsonl")
	watchOut.Expect(t, second, 2)

	if err := mesh.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = mesh.Wait()
	runErr.Expect(t, "the gateway is unavailable; retrying", 1)
	watchErr.Expect(t, "the gateway is unavailable; retrying", 1)
	serve()
	for name, got := range map[string]struct {
		cmd       *exec.Cmd
		out, errs *harnesstest.Text
	}{"run": {run, runOut, runErr}, "watch": {watch, watchOut, watchErr}} {
		if code := harnesstest.ExitCode(t, got.cmd); code != 0 {
			t.Errorf("%s: exit code %d:\n%s", name, code, got.errs)
		}
		if strings.Count(got.errs.String(), "gateway is unavailable") != 1 || strings.Count(got.errs.String(), "gateway back") != 1 {
			t.Errorf("%s says:\n%s", name, got.errs)
		}
	}
	whole := harnesstest.Call(t, nil, "", "watch", "r", "--server", address, "--token-file", filepath.Join(p.Data, "gateway.key"), "--output", "jsonl")
	want := events(t, whole.Out)
	if !strings.Contains(whole.Out, `"worker.takeover"`) {
		t.Errorf("nothing was killed in mid-run:\n%s", whole.Out)
	}
	for name, out := range map[string]*harnesstest.Text{"run": runOut, "watch": watchOut} {
		if got := events(t, out.String()); !slices.Equal(got, want) {
			t.Errorf("%s printed %v, want %v", name, got, want)
		}
	}
}
