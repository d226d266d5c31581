package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// socketVariable makes this test program list runs at a socket and print how it ended.
const socketVariable = "NODE_TEST_SOCKET"

func TestMain(m *testing.M) {
	storetest.InMemory()
	if socket := os.Getenv(socketVariable); socket != "" {
		fmt.Println(listAt(socket))
		return
	}
	disktest.Enter()
	os.Exit(m.Run())
}

func listAt(socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = harnessv1.NewGatewayServiceClient(conn).ListRuns(ctx, &harnessv1.ListRunsRequest{})
	return err
}

// tryAll starts a node and a run that executes commands in a workspace, and returns the
// node and the workspace when the run has ended. The commands get a program, ./client,
// that lists runs at the local socket.
func tryAll(t *testing.T, cfg Config, spec *harnessv1.LoopConfig, arguments string, commands ...func(*Node) string) (*Node, string) {
	t.Helper()
	workspace := t.TempDir()
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	client := fmt.Appendf(nil, "#!/bin/sh\n%s=unix:%s exec %s\n", socketVariable, n.local.socket, os.Args[0])
	if err := os.WriteFile(filepath.Join(workspace, "client"), client, 0o700); err != nil {
		t.Fatal(err)
	}
	turns := "turns:\n"
	for _, c := range commands {
		turns += fmt.Sprintf("  - {calls: [{name: run_command, arguments: {command: %q%s}}]}\n", c(n), arguments)
	}
	script := filepath.Join(workspace, "script.yaml")
	if err := os.WriteFile(script, []byte(turns+"  - {calls: [{name: work_complete, arguments: {summary: tried}}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: "r", Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Try."), Workspace: workspace, Agent: &harnessv1.AgentSpec{Model: "script:" + script}, Config: spec,
	}}); err != nil {
		t.Fatal(err)
	}
	stream, err := n.Client().WatchRun(t.Context(), &harnessv1.WatchRunRequest{RunId: "r", Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	for err == nil {
		_, err = stream.Recv()
	}
	return n, workspace
}

// line returns a command that does not depend on the node.
func line(text string) func(*Node) string { return func(*Node) string { return text } }

// TestCommandsCannotUseTheSocketWhereTheyAreNotConfined: a command of a run, also one
// that left its session and its parent, is refused at the socket of the node.
func TestCommandsCannotUseTheSocketWhereTheyAreNotConfined(t *testing.T) {
	yolo := true
	n, workspace := tryAll(t, Config{Data: t.TempDir(), Sync: "interval", Confined: func() bool { return false }},
		&harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: &yolo}, Sandbox: &harnessv1.SandboxConfig{Unconfined: true}}, ", unconfined: to try",
		line("./client > direct"), line("env -i PATH=$PATH ./client > bare"),
		// It leaves its parent, its session and its environment.
		line("(env -i PATH=$PATH setsid ./client > left 2>&1 &) ; while ! [ -s left ]; do sleep 0.05; done"))
	if err := listAt("unix:" + n.local.socket); err != nil {
		t.Fatalf("a process of the user: %v", err)
	}
	for _, name := range []string{"direct", "bare", "left"} {
		said, err := os.ReadFile(filepath.Join(workspace, name))
		if err != nil || !strings.Contains(string(said), "PermissionDenied") || !strings.Contains(string(said), "descends from a command of a run") {
			t.Errorf("%s: %s, %v", name, said, err)
		}
	}
}

// TestConfinedCommandsCannotReadTheKey, nor the notes of it, with network or without. The
// command itself runs.
func TestConfinedCommandsCannotReadTheKey(t *testing.T) {
	yolo := true
	notes := localkey.Notes{Dir: filepath.Join(t.TempDir(), "keys")}
	n, workspace := tryAll(t, Config{Data: t.TempDir(), Sync: "interval", Listen: "127.0.0.1:0", Notes: notes},
		&harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: &yolo}}, "",
		func(n *Node) string {
			return fmt.Sprintf("echo begun > begun; cat %s/* > keys; cat %s > key; grep -s harness-key- /proc/*/environ /proc/*/cmdline > processes", notes.Dir, filepath.Join(n.cfg.Data, KeyFile))
		})
	if confined := n.sandbox.support.GetLevel() > sandbox.Off; confined != (n.keys.file != "") {
		t.Errorf("confined %v, and the key is in %q", confined, n.keys.file)
	}
	for name, want := range map[string]string{"begun": "begun\n", "keys": "", "key": "", "processes": ""} {
		if said, err := os.ReadFile(filepath.Join(workspace, name)); err != nil || string(said) != want {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
}
