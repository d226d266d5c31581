package serve_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/serve"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// startBus starts a NATS server and returns its URL.
func startBus(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

// TestRolesOfAMeshStartWithoutFlags: processes that start at the same time, without --data and
// --listen, share the default directory, and none but the gateway takes its port. A process
// that was given --data has it alone.
func TestRolesOfAMeshStartWithoutFlags(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	url := startBus(t)
	if got := harnesstest.Call(t, nil, "", "provision", "--nats", url, "--max-bytes", "64000000"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	home := t.TempDir()
	var running sync.WaitGroup
	defer running.Wait()
	for _, role := range append(workflow.Roles(), workflow.Turn, workflow.Repair) {
		args := []string{"serve", "--roles", role, "--nats", url}
		if role == workflow.Gateway {
			args = append(args, "--listen", "127.0.0.1:0") // 7447 may be in use on this machine
		}
		cmd, said := harnesstest.Program(t, args...), harnesstest.NewText()
		cmd.Env = append(cmd.Env, "HOME="+home)
		cmd.Stderr = said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		running.Go(func() {
			_ = cmd.Wait()
			close(ended)
		})
		defer func() { _ = cmd.Process.Signal(syscall.SIGTERM) }()
		said.Expect(t, "role="+role, 1)
		select {
		case <-ended:
			t.Errorf("%s ended: %s", role, said)
		default:
		}
		if strings.Contains(said.String(), ":7447") || strings.Contains(said.String(), "in use") {
			t.Errorf("%s: %s", role, said)
		}
	}
	// The gateway, which starts last, and the tool host use it; the others write nothing.
	if _, err := os.Stat(filepath.Join(home, ".local/share/harness/gateway.key")); err != nil {
		t.Error(err)
	}
	named := harnesstest.Program(t, "serve", "--roles", "turn", "--nats", url, "--data", filepath.Join(home, ".local/share/harness"))
	if out, err := named.CombinedOutput(); err == nil || !strings.Contains(string(out), "is in use by process") {
		t.Errorf("with --data: %v, %s", err, out)
	}
}

// TestOnlyTheGatewayHasTheDefaultPort: another role listens at a free one.
func TestOnlyTheGatewayHasTheDefaultPort(t *testing.T) {
	t.Parallel()
	for roles, want := range map[string]string{"gateway": "127.0.0.1:7447", "all": "127.0.0.1:7447", "turn,gateway": "127.0.0.1:7447", "turn": "127.0.0.1:0", "toolhost,repair": "127.0.0.1:0"} {
		if got := (&serve.Cmd{Roles: strings.Split(roles, ",")}).DefaultListen(); got != want {
			t.Errorf("%s: %s, want %s", roles, got, want)
		}
	}
}
