package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// served starts a background process in this process and returns a connection to it.
func served(t *testing.T) (dir string, conn *grpc.ClientConn) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	up, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Config{Data: dir, Build: "b", Linger: time.Hour, Env: os.Getenv, Ready: func() { close(up) }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-up:
	case err := <-ended:
		t.Fatal(err)
	}
	conn, _, err := node.Attach(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return dir, conn
}

// TestOneSuccessorAtATime: of two successors one may end the process. If it goes away instead,
// the other one may, and without both the process works as before.
func TestOneSuccessorAtATime(t *testing.T) {
	_, conn := served(t)
	local := harnessv1.NewLocalServiceClient(conn)
	request := func() (grpc.ServerStreamingClient[harnessv1.HandOverResponse], context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := local.HandOver(ctx, &harnessv1.HandOverRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return stream, cancel
	}
	ready := func(stream grpc.ServerStreamingClient[harnessv1.HandOverResponse]) bool {
		t.Helper()
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return r.GetReady()
	}
	first, leave := request()
	if !ready(first) {
		t.Fatal("an idle process is not ready")
	}
	second, leaveToo := request()
	if ready(second) {
		t.Error("two successors may end the process")
	}
	leave()
	if !ready(second) {
		t.Error("the second successor may not end the process")
	}
	leaveToo()

	dir := t.TempDir()
	script := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(script, []byte("turns:\n  - {calls: [{name: write_file, arguments: {path: a, content: b}}]}\n  - {calls: [{name: work_complete, arguments: {summary: Done.}}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := harnessv1.NewGatewayServiceClient(conn)
	started, err := client.StartRun(t.Context(), &harnessv1.StartRunRequest{Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Write."), Workspace: dir, Agent: &harnessv1.AgentSpec{Model: "script:" + script},
	}})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.WatchRun(t.Context(), &harnessv1.WatchRunRequest{RunId: started.GetRunId(), Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	for err == nil {
		_, err = stream.Recv()
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
		t.Errorf("a process that handed nothing over does not work: %v", err)
	}
}

// TestABuildFromBeforeHandOvers: the error is one line with the verb that replaces it.
func TestABuildFromBeforeHandOvers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	none := func(string) map[string]string { return nil }
	former, err := node.Start(t.Context(), node.Config{Data: dir, Program: "former", Background: &node.Background{
		Service: harnessv1.UnimplementedLocalServiceServer{},
	}, Environments: &node.Environments{Provider: none, Commands: func(string) []string { return nil }, Deleted: func(string) {}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = former.Stop(context.Background()) })
	successor := Successor{Dir: dir, Build: "new", Replace: os.Getpid(), Waits: func(string) error { return nil }}
	_, _, err = successor.TakeOver(t.Context())
	if err == nil || !strings.Contains(err.Error(), "harness daemon restart --now replaces it") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a process from before hand-overs: %v", err)
	}
	successor.Replace++ // another program has replaced it
	if _, _, err := successor.TakeOver(t.Context()); !errors.Is(err, ErrHeld) {
		t.Errorf("a process that was replaced: %v", err)
	}
}
