package knocktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// Nothing is the output of the program if nothing worked.
const Nothing = "knocked"

// Build builds the program into a folder and returns its path.
func Build(t *testing.T, dir string) string {
	t.Helper()
	built, err := program.Build("knock", "github.com/harnessmesh/harnessmesh/test/sandbox/knock")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "knock")
	if err := os.WriteFile(copied, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	return copied
}

const asking = `turns:
  - calls: [{name: run_command, arguments: {command: "touch approved", unconfined: "to see whether it can approve itself"}}]
  - calls: [{name: work_complete, arguments: {summary: done}}]
`

// StartAsking starts a run that waits for an approval.
func StartAsking(t *testing.T, client harnessv1.GatewayServiceClient, run string) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte(asking), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := client.StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Wait."), Workspace: t.TempDir(), Agent: &harnessv1.AgentSpec{Model: "script:" + script},
	}})
	if err != nil {
		t.Fatal(err)
	}
	// A call is announced before the run parks, and later records would change what States returns.
	waittest.Eventually(t, "the approval of "+run, func() bool {
		state, err := client.GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: run})
		return err == nil && state.GetRun().GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED
	})
}

// States returns the states of runs.
func States(t *testing.T, client harnessv1.GatewayServiceClient, runs []string) []proto.Message {
	t.Helper()
	var all []proto.Message
	for _, run := range runs {
		state, err := client.GetState(t.Context(), &harnessv1.GetStateRequest{RunId: run})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, state)
	}
	return all
}

// PortsOf returns the ports at which a process listens.
func PortsOf(t *testing.T, pid int) []string {
	t.Helper()
	own := map[string]bool{}
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil {
			own[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	var ports []string
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			const listening = "0A"
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[3] != listening || !own[fields[9]] {
				continue
			}
			var port int
			_, digits, _ := strings.Cut(fields[1], ":")
			if _, err := fmt.Sscanf(digits, "%x", &port); err != nil {
				t.Fatal(err)
			}
			ports = append(ports, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	return ports
}

// unprivileged is a user and group that own nothing of a harness.
const unprivileged = 65534

// AsAnother runs the program as another user, outside of any sandbox, and returns its
// output. Only root can.
func AsAnother(t *testing.T, knock string, arguments []string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "knock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(knock)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "knock")
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), program, arguments...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
