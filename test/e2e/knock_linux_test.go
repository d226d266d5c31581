package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/knocktest"
)

// TestSystemNoCommandUsesItsHarness: a command with network, that knows all names, tries each method
// at each port and socket of a served harness, for its own run and for another one. So does
// another user of the machine. Nothing works, and nothing is in the log.
func TestSystemNoCommandUsesItsHarness(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serve := start(t, environment(), "serve", "--data", data, "--listen", "127.0.0.1:0", "--scripts", os.TempDir())
	var gateway string
	eventually(t, "the gateway", func() bool {
		serve.mu.Lock()
		defer serve.mu.Unlock()
		_, rest, found := strings.Cut(serve.stderr.String(), "ready role=gateway addr=")
		gateway, _, _ = strings.Cut(rest, "\n")
		return found
	})
	conn, err := grpc.NewClient(gateway, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(data))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := harnessv1.NewGatewayServiceClient(conn)
	runs := []string{"own", "another"}
	for _, run := range runs {
		knocktest.StartAsking(t, client, run)
	}
	before := append(knocktest.States(t, client, runs), all(t, client))

	dir := t.TempDir()
	knock := knocktest.Build(t, dir)
	ports := knocktest.PortsOf(t, serve.cmd.Process.Pid)
	if !slices.Contains(ports, gateway) {
		t.Fatalf("the gateway at %s is not among the ports %v", gateway, ports)
	}
	arguments := slices.Concat(runs, []string{"--"}, ports, []string{"--"}, doors(t, data))
	if !slices.Contains(arguments, keytest.File(data)) {
		t.Fatalf("the key is not among the doors %v", arguments)
	}
	for _, level := range []harnessv1.SandboxLevel{sandbox.Kernel, sandbox.Full} {
		expectNothing(t, "a command at "+sandbox.Name(level), confined(t, level, dir, "./knock "+strings.Join(arguments, " ")))
	}
	if os.Getuid() == 0 {
		expectNothing(t, "another user", knocktest.AsAnother(t, knock, arguments))
	} else {
		t.Log("not tried: another user, because this test does not run as root")
	}
	for i, after := range append(knocktest.States(t, client, runs), all(t, client)) {
		if !proto.Equal(before[i], after) {
			t.Errorf("the log has changed:\n%v\nnow\n%v", before[i], after)
		}
	}
	// The same program is let in with the key: it can knock.
	out, err := exec.CommandContext(t.Context(), knock, slices.Concat(runs, []string{"--", gateway, "--", keytest.File(data)})...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "called /harness.v1.GatewayService/GetRun for own") {
		t.Errorf("with the key: %v\n%s", err, out)
	}
}

// doors returns the files of a harness that can hold a key, and its sockets.
func doors(t *testing.T, data string) []string {
	t.Helper()
	var all []string
	sum := sha256.Sum256([]byte(data))
	socket := filepath.Join(os.TempDir(), fmt.Sprintf("harness-%d", os.Getuid()), hex.EncodeToString(sum[:8])+".sock")
	for _, folder := range []string{data, filepath.Join(filepath.Dir(harness), "config"), socket} {
		_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && (entry.Type()&os.ModeSocket != 0 || strings.Contains(path, "key")) {
				all = append(all, path)
			}
			return nil
		})
	}
	return all
}

// confined runs a command with network at a level, as a tool host does.
func confined(t *testing.T, level harnessv1.SandboxLevel, workspace, line string) string {
	t.Helper()
	server, err := toolhostserver.New(toolhostserver.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close(context.Background()) }()
	arguments, err := json.Marshal(map[string]any{"command": line})
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.ExecuteTool(t.Context(), &harnessv1.ExecuteToolRequest{
		Namespace: "default", RunId: "own", CallId: "knock", FirstSequence: 1, Tool: tools.RunCommand, Arguments: string(arguments), Workspace: workspace,
		Confinement: &harnessv1.Confinement{Level: level, Config: &harnessv1.SandboxConfig{
			Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL},
		}},
	})
	switch {
	case err != nil:
		t.Fatal(err)
	case response.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED:
		t.Logf("not tried at %s: %s", sandbox.Name(level), response.GetResult())
		return "knocked\n[exit code 0]"
	}
	return response.GetResult()
}

// all returns the list of runs.
func all(t *testing.T, client harnessv1.GatewayServiceClient) proto.Message {
	t.Helper()
	list, err := client.ListRuns(t.Context(), &harnessv1.ListRunsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// expectNothing expects that knocking ended and that nothing worked.
func expectNothing(t *testing.T, who, output string) {
	t.Helper()
	if got := strings.TrimSuffix(strings.TrimSpace(output), "\n[exit code 0]"); got != knocktest.Nothing {
		t.Errorf("%s: %s", who, got)
	}
}
