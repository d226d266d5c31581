package mcp

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServers returns Servers with folders of a test.
func newServers(t *testing.T, c Config) *Servers {
	t.Helper()
	c.Dir, c.LedgerID, c.Remote, c.Open, c.Logger = t.TempDir(), "ledger", &remote.Pool{}, workspace.Open, slog.New(slog.DiscardHandler)
	c.Tokens, c.ResultBytes = filepath.Join(c.Dir, "tokens"), 1<<10
	if c.Environ == nil {
		c.Environ = func(string) []string { return nil }
	}
	c.Commands = command.New(command.Config{Dir: c.Dir, Data: c.Dir, Mark: func() string { return "test" }, Logger: c.Logger})
	c.Guard, c.Places = guard.New(guard.Config{Dir: c.Dir, Logger: c.Logger}), places.New(trust.Open(c.Dir), c.Logger)
	s := New(c)
	t.Cleanup(func() { s.Close(); c.Guard.Close() })
	return s
}

// TestVariablesAreThoseOfTheClient, else those of this process for a local person, and never
// those that the operator withholds.
func TestVariablesAreThoseOfTheClient(t *testing.T) {
	t.Setenv("MCP_TEST", "of the process")
	const client = "client"
	s := newServers(t, Config{Withheld: []string{"MCP_KEY"}, Environ: func(run string) []string {
		if run != client {
			return nil
		}
		return []string{"MCP_TEST=of the client", "MCP_KEY=secret"}
	}})
	for _, c := range []struct {
		run   string
		local bool
		name  string
		want  string
	}{
		{client, true, "MCP_TEST", "of the client"},
		{client, false, "MCP_TEST", "of the client"},
		{client, true, "HOME", ""},
		{client, true, "MCP_KEY", ""},
		{"other", true, "MCP_TEST", "of the process"},
		{"other", false, "MCP_TEST", ""},
	} {
		if value, found := s.Variable(c.run, c.local, c.name); value != c.want || found != (c.want != "") {
			t.Errorf("%+v: got %q, %v", c, value, found)
		}
	}
}

// TestAddressesOfLocalPersonsArePermitted, in addition to those of the operator.
func TestAddressesOfLocalPersonsArePermitted(t *testing.T) {
	t.Parallel()
	private, err := sandbox.ParseHost("db.internal:5432")
	if err != nil {
		t.Fatal(err)
	}
	s := newServers(t, Config{Private: []sandbox.Host{private}})
	if d := s.dialer("http://127.0.0.1:8080/mcp", false); !slices.Equal(d.Allowed, []sandbox.Host{private}) {
		t.Errorf("got %v", d.Allowed)
	}
	if d := s.dialer("http://127.0.0.1:8080/mcp", true); len(d.Allowed) != 2 || d.Allowed[1].Name != "127.0.0.1" {
		t.Errorf("got %v", d.Allowed)
	}
	if len(s.config.Private) != 1 {
		t.Errorf("the hosts of the operator are %v", s.config.Private)
	}
}

// TestServicesOfTheOperatorKeepTheirAddress: descriptions have none, and a request names the
// service alone.
func TestServicesOfTheOperatorKeepTheirAddress(t *testing.T) {
	t.Parallel()
	s := newServers(t, Config{Services: []*harnessv1.McpServer{{Name: "notes", Grpc: "127.0.0.1:1"}}})
	services := s.Services()
	if len(services) != 1 || services[0].GetGrpc() != "" || !services[0].GetHost() || s.config.Services[0].GetGrpc() == "" {
		t.Fatalf("got %v", services)
	}
	services[0].Grpc = "127.0.0.1:2"
	connection, err := s.dial(services[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if target := connection.Target(); !strings.HasSuffix(target, "127.0.0.1:1") {
		t.Errorf("got %s", target)
	}
	if _, err := s.dial(&harnessv1.McpServer{Name: "other", Host: true}); err == nil || !strings.Contains(err.Error(), "--tool-service other=HOST:PORT") {
		t.Errorf("got %v", err)
	}
}

// TestAProcessOfARemotePersonIsConfined, or does not run.
func TestAProcessOfARemotePersonIsConfined(t *testing.T) {
	t.Parallel()
	s, dir := newServers(t, Config{}), t.TempDir()
	run := func(local bool) (notice string, err error) {
		input, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = end.Close() }()
		err = s.run(context.Background(), mcpclient.Process{
			Run:    mcpclient.Run{Key: "run", Workspace: dir, Sandbox: &harnessv1.SandboxConfig{Level: sandbox.Off}, Local: local},
			Server: &harnessv1.McpServer{Command: "true"}, Line: "touch started", Input: input, Notice: func(text string) { notice = text },
		})
		return notice, err
	}
	if _, err := run(false); err == nil || !strings.Contains(err.Error(), "no local person has named it") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the process ran")
	}
	if notice, err := run(true); err != nil || notice != "its process is not confined: the sandbox is off" {
		t.Errorf("got %q, %v", notice, err)
	}
}

// TestDescribeRefuses what no request may have, and returns nothing for no servers.
func TestDescribeRefuses(t *testing.T) {
	t.Parallel()
	s := newServers(t, Config{})
	for want, change := range map[string]func(*harnessv1.DescribeServersRequest){
		"run_id":      func(r *harnessv1.DescribeServersRequest) { r.RunId = "" },
		"absolute":    func(r *harnessv1.DescribeServersRequest) { r.Workspace = "relative" },
		"0 to 30s":    func(r *harnessv1.DescribeServersRequest) { r.Wait = durationpb.New(time.Minute) },
		"":            func(*harnessv1.DescribeServersRequest) {},
		"must be 0 t": func(r *harnessv1.DescribeServersRequest) { r.Wait = durationpb.New(-1) },
	} {
		req := &harnessv1.DescribeServersRequest{Namespace: "n", RunId: "r", FirstSequence: 7}
		change(req)
		resp, err := s.Describe(context.Background(), req)
		if want == "" && (err != nil || len(resp.GetServers()) != 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, %v", want, resp, err)
		}
	}
}
