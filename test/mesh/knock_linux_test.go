package mesh

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/knocktest"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestSystemNoCommandUsesItsMesh: with a process for each role and a NATS with a password, a command
// of a run, with network and all names, tries each method at each port of each process, and
// each file that can hold a key, for its own run and for others. So does another user of the
// machine. Nothing works, and nothing is in the log.
func TestSystemNoCommandUsesItsMesh(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{
		NATS: meshtest.NATSConfig{Extra: `authorization { user: mesh, password: "s3cret" }`}, Credentials: "mesh:s3cret",
	})
	client := m.Client()
	waiting := []string{"one", "two"}
	for _, run := range waiting {
		knocktest.StartAsking(t, client, run)
	}
	before := knocktest.States(t, client, waiting)

	dir := t.TempDir()
	knock := knocktest.Build(t, dir)
	ports := knocktest.PortsOf(t, m.Bus.PID(0))
	for _, role := range meshtest.Roles {
		ports = append(ports, knocktest.PortsOf(t, m.Process(role).PID())...)
	}
	if len(ports) < len(meshtest.Roles)+1 || !slices.Contains(ports, m.Gateway()) {
		t.Fatalf("the ports are %v", ports)
	}
	doors := keysBelow(t, filepath.Dir(m.Data(workflow.Gateway)))
	key := keytest.File(m.Data(workflow.Gateway))
	for _, name := range []string{key, "mesh.key", "nats.creds"} {
		if !slices.ContainsFunc(doors, func(path string) bool { return strings.HasSuffix(path, name) }) {
			t.Fatalf("%s is not among the doors %v", name, doors)
		}
	}
	arguments := func(runs ...string) []string {
		return slices.Concat(runs, []string{"--"}, ports, []string{"--"}, doors)
	}

	for _, level := range []harnessv1.SandboxLevel{sandbox.Kernel, sandbox.Full} {
		run := "knocks-at-" + sandbox.Name(level)
		if out := knocking(t, m, run, level, knock, arguments("one", "two", run)); out != knocktest.Nothing {
			t.Errorf("a command at %s: %s", sandbox.Name(level), out)
		}
	}
	if os.Getuid() == 0 {
		if out := strings.TrimSpace(knocktest.AsAnother(t, knock, arguments(waiting...))); out != knocktest.Nothing {
			t.Errorf("another user: %s", out)
		}
	} else {
		t.Log("not tried: another user, because this test does not run as root")
	}
	for i, after := range knocktest.States(t, client, waiting) {
		if !proto.Equal(before[i], after) {
			t.Errorf("the log of %s has changed:\n%v\nnow\n%v", waiting[i], before[i], after)
		}
	}
	list, err := client.ListRuns(t.Context(), &harnessv1.ListRunsRequest{})
	if want := len(waiting) + 2; err != nil || len(list.GetRuns()) != want {
		t.Errorf("there are %d runs, %v, want %d", len(list.GetRuns()), err, want)
	}

	// The user's own programs are let in with these files: the program can knock.
	out, err := exec.CommandContext(t.Context(), knock, slices.Concat(waiting, []string{"--"}, ports, []string{"--"}, doors)...).CombinedOutput()
	for _, door := range []string{"GatewayService/GetRun for one", "ToolHostService/DescribeHost for one"} {
		if err != nil || !strings.Contains(string(out), "called /harness.v1."+door) {
			t.Errorf("with the keys there is no %s: %v\n%s", door, err, out)
		}
	}
}

// keysBelow returns the files and sockets below a folder that can be a way in.
func keysBelow(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && (entry.Type()&os.ModeSocket != 0 || strings.Contains(path, "key") || strings.Contains(path, "creds")) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// knocking runs the program as the command of a run, with network, and returns its output.
func knocking(t *testing.T, m *meshtest.Mesh, run string, level harnessv1.SandboxLevel, knock string, arguments []string) string {
	t.Helper()
	workspace := t.TempDir()
	program, err := os.ReadFile(knock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "knock"), program, 0o700); err != nil {
		t.Fatal(err)
	}
	script := m.Write(run+".yaml", fmt.Sprintf(`turns:
  - calls: [{name: run_command, arguments: {command: "./knock %s > out 2>&1", timeout_seconds: 300}}]
  - calls: [{name: work_complete, arguments: {summary: done}}]
`, strings.Join(arguments, " ")))
	_, err = m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Knock."), Workspace: workspace, Agent: &harnessv1.AgentSpec{Model: "script:" + script},
		Config: &harnessv1.LoopConfig{
			Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)},
			Sandbox: &harnessv1.SandboxConfig{
				Level: level, Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL},
			},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var state *harnessv1.Run
	waittest.Eventually(t, run+" ends", func() bool {
		got, err := m.Client().GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: run})
		state = got.GetRun()
		return err == nil && (state.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE || state.GetStatus() == harnessv1.RunStatus_RUN_STATUS_FAILED)
	})
	out, err := os.ReadFile(filepath.Join(workspace, "out"))
	if os.IsNotExist(err) {
		t.Logf("not tried at %s, which this machine does not have: %v", sandbox.Name(level), state)
		return knocktest.Nothing
	}
	return strings.TrimSpace(string(out))
}
