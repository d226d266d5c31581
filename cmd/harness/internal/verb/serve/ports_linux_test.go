package serve_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// listeningPorts returns the TCP ports on which a process listens, from /proc.
func listeningPorts(t *testing.T, pid int) []string {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, e := range entries {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name())) // gone by now
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var ports []string
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			const local, state, inode, listens = 1, 3, 9, "0A"
			fields := strings.Fields(line)
			if len(fields) > inode && fields[state] == listens && own[fields[inode]] {
				ports = append(ports, fields[local])
			}
		}
	}
	return ports
}

// natsServer starts a NATS server that is provisioned.
func natsServer(t *testing.T) string {
	t.Helper()
	e, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	if err := jetstream.Provision(t.Context(), jetstream.Config{URL: e.URL()}, jetstream.Layout{MaxBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	return e.URL()
}

// TestProcessOpensOnePort: whatever roles it has, and the ready lines name that port.
func TestProcessOpensOnePort(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	nats := natsServer(t)
	withoutGateway := []string{"toolhost", "inference", "repair", "compaction", "turn", "stopdecision"}
	for name, c := range map[string]struct{ roles, args []string }{
		"all roles":              {workflow.Roles(), []string{"--sync", "interval"}},
		"all roles in a mesh":    {workflow.Roles(), []string{"--nats", nats}},
		"roles without gateway":  {withoutGateway, []string{"--nats", nats}},
		"one role":               {[]string{"toolhost"}, []string{"--nats", nats}},
		"all roles, no key":      {workflow.Roles(), []string{"--sync", "interval", "--open-loopback"}},
		"no bus, without a door": {[]string{"toolhost", "turn"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := harnesstest.StartServe(t, c.roles, append(c.args, "--listen", "127.0.0.1:0")...)
			if ports := listeningPorts(t, s.Cmd.Process.Pid); len(ports) != 1 {
				t.Errorf("it listens at %v", ports)
			}
			if len(s.Addresses) != len(c.roles) {
				t.Errorf("ready lines of %v", s.Addresses)
			}
			for role, address := range s.Addresses {
				if address != s.Addresses[c.roles[0]] {
					t.Errorf("%s is at %s, %s at %s", role, address, c.roles[0], s.Addresses[c.roles[0]])
				}
			}
			if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := harnesstest.ExitCode(t, s.Cmd); code != 0 {
				t.Errorf("exit code %d:\n%s", code, s.Errs)
			}
		})
	}
}

// TestAnotherUserCannotCallRoles: without the key a tool host refuses, without a path, and only
// its owner can read the key.
func TestAnotherUserCannotCallRoles(t *testing.T) {
	t.Parallel()
	s := harnesstest.StartServe(t, []string{"toolhost"}, "--nats", natsServer(t), "--listen", "127.0.0.1:0")
	conn, err := grpc.NewClient(s.Addresses["toolhost"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	key := filepath.Join(s.Config, "harness", "mesh.key")
	_, err = harnessv1.NewToolHostServiceClient(conn).ExecuteTool(t.Context(), &harnessv1.ExecuteToolRequest{Tool: "run_command"})
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "mesh.key") || strings.Contains(err.Error(), filepath.Dir(key)) {
		t.Errorf("a call without a key: %v", err)
	}
	for path, want := range map[string]os.FileMode{key: 0o600, filepath.Dir(key): 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if os.Getuid() != 0 {
		return // this process cannot become another user; the modes tell
	}
	if err := openFolders(s.Config); err != nil {
		t.Fatal(err)
	}
	const other = 65534
	cat := exec.CommandContext(t.Context(), "cat", key)
	cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
	if out, err := cat.CombinedOutput(); err == nil || strings.Contains(string(out), "harness-key-") {
		t.Errorf("another user reads the key: %v, %s", err, out)
	}
}

// openFolders lets every user search the folders of a test down to dir, so that only what
// the program made protects the key.
func openFolders(dir string) error {
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}
