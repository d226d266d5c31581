package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// TestBusWithoutUsersIsSaid: one line names the server and what to do. A server with users
// is not warned of, whether the password is in the URL or in a file.
func TestBusWithoutUsersIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		options server.Options
		want    int
	}{
		"open":  {server.Options{}, 1},
		"users": {server.Options{Username: "mesh", Password: "word"}, 0},
	} {
		c.options.Host, c.options.Port, c.options.NoSigs, c.options.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
		c.options.JetStream, c.options.StoreDir = true, t.TempDir()
		s, err := server.NewServer(&c.options)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(30 * time.Second) {
			t.Fatal("the server is not ready")
		}
		dir := t.TempDir()
		creds := filepath.Join(dir, "creds")
		if err := os.WriteFile(creds, []byte("mesh:word\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Provision(t.Context(), jetstream.Config{URL: s.ClientURL(), Credentials: creds}, jetstream.Layout{MaxBytes: 64 << 20}); err != nil {
			t.Fatal(err)
		}
		m := startMember(t, Config{NATS: s.ClientURL(), Credentials: creds, MeshKey: MeshKey{File: filepath.Join(dir, MeshKeyFile)}, Roles: []string{workflow.Compaction}})
		text := m.notices.String()
		if n := strings.Count(text, "accepts clients without credentials"); n != c.want || strings.Count(text, "\n") != c.want {
			t.Errorf("%s: %d notices: %s", name, n, text)
		}
		if c.want > 0 && (!strings.Contains(text, "WARNING: NATS at nats://127.0.0.1:") || !strings.Contains(text, "--nats-creds") || strings.Contains(text, "word")) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestCommandsDoNotReadTheKeyOfTheMesh, wherever it is.
func TestCommandsDoNotReadTheKeyOfTheMesh(t *testing.T) {
	cfg := Config{MeshKey: MeshKey{File: "/srv/mesh.key"}, Credentials: "/srv/nats.creds", ModelEnv: func(string) string { return "" }}
	for _, file := range []string{cfg.MeshKey.File, cfg.Credentials} {
		if !slices.Contains(cfg.secrets(), file) {
			t.Errorf("%s is not among the secrets %v", file, cfg.secrets())
		}
	}
}
