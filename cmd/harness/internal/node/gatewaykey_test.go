package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// TestPlanOfKeys: what each listener requires, by configuration.
func TestPlanOfKeys(t *testing.T) {
	for name, c := range map[string]struct {
		place place
		want  keyPlan
	}{
		"serve on loopback":              {place{listens: true, loopback: true, confined: true}, keyPlan{file: true, network: true, socket: true, noted: true}},
		"local mode":                     {place{confined: true}, keyPlan{file: true, socket: true}},
		"tokens on loopback":             {place{tokens: true, listens: true, loopback: true, confined: true}, keyPlan{file: true, socket: true}},
		"tokens elsewhere":               {place{tokens: true, listens: true, confined: true}, keyPlan{file: true, socket: true}},
		"insecure":                       {place{listens: true, confined: true}, keyPlan{file: true, socket: true}},
		"open":                           {place{open: true, listens: true, loopback: true, confined: true}, keyPlan{}},
		"not confined":                   {place{listens: true, loopback: true}, keyPlan{network: true, ancestry: true}},
		"not confined, local mode":       {place{}, keyPlan{ancestry: true}},
		"not confined, tokens":           {place{tokens: true, listens: true, loopback: true}, keyPlan{ancestry: true}},
		"not confined, with a key file":  {place{listens: true, loopback: true, named: true}, keyPlan{file: true, network: true, ancestry: true}},
		"confined, with a key file":      {place{listens: true, loopback: true, confined: true, named: true}, keyPlan{file: true, network: true, socket: true, noted: true}},
		"not confined, open on loopback": {place{open: true, listens: true, loopback: true}, keyPlan{}},
	} {
		if got := planKeys(c.place); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestKeyThatCannotBeNoted is a warning only where clients need it to reach the gateway's address.
func TestKeyThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		network *access.Tokens
		warns   bool
	}{
		"the address requires the key": {access.Key("k", "where"), true},
		"tokens, or nothing":           {nil, false},
	} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		n := &Node{cfg: Config{Notes: localkey.Notes{Dir: filepath.Join(file, "keys")}, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		n.keys = doorKeys{network: c.network, file: file}
		n.recordKeyFile("127.0.0.1:7447", true)
		if warned := strings.Contains(log.String(), "level=WARN"); warned != c.warns {
			t.Errorf("%s: %q", name, log.String())
		}
	}
}

// gatewayNode is a node with a gateway alone.
type gatewayNode struct {
	*Node
	cfg     Config
	notices []string
}

func startGateway(t *testing.T, cfg Config) *gatewayNode {
	t.Helper()
	dir := t.TempDir()
	if cfg.Data == "" {
		cfg.Data = filepath.Join(dir, "data")
	}
	cfg.Sync, cfg.Notes = "interval", localkey.Notes{Dir: filepath.Join(dir, "keys")}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if len(cfg.Roles) == 0 {
		cfg.Roles = []string{workflow.Gateway}
	}
	g := &gatewayNode{}
	cfg.Notice = func(text string) { g.notices = append(g.notices, text) }
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	g.Node, g.cfg = n, cfg
	return g
}

// list lists runs at an address with a token, empty for none.
func list(t *testing.T, address, token string) error {
	t.Helper()
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(access.Bearer(token, true)))
	}
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if r, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health needs a token: %v", err)
	}
	_, err = harnessv1.NewGatewayServiceClient(conn).ListRuns(t.Context(), &harnessv1.ListRunsRequest{})
	if streamed := watch(t, conn); status.Code(streamed) != status.Code(err) {
		t.Errorf("a stream ends with %v, a call with %v", streamed, err)
	}
	return err
}

// watch watches a run that does not exist; nil if it may.
func watch(t *testing.T, conn *grpc.ClientConn) error {
	t.Helper()
	stream, err := harnessv1.NewGatewayServiceClient(conn).WatchRun(t.Context(), &harnessv1.WatchRunRequest{RunId: "none"})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

func (g *gatewayNode) socket() string { return "unix:" + g.local.socket }

// key reads the key file.
func (g *gatewayNode) key(t *testing.T) string {
	t.Helper()
	key, err := localkey.Read(filepath.Join(g.cfg.Data, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// refused fails the test unless an error refuses a token, names the source of the key, and has
// neither a key nor a path of this machine.
func refused(t *testing.T, what, source string, err error) {
	t.Helper()
	text := status.Convert(err).Message()
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(text, source) || strings.Contains(text, localkey.Prefix) || strings.Contains(text, os.TempDir()) {
		t.Errorf("%s: %v, want UNAUTHENTICATED with %s", what, err, source)
	}
}

func TestGatewayOnLoopbackRequiresItsKey(t *testing.T) {
	g := startGateway(t, Config{})
	file := filepath.Join(g.cfg.Data, KeyFile)
	for _, address := range []string{g.Addr(workflow.Gateway), g.socket()} {
		refused(t, address+" without", KeyFile, list(t, address, ""))
		refused(t, address+" with another", KeyFile, list(t, address, localkey.New()))
		if err := list(t, address, g.key(t)); err != nil {
			t.Errorf("%s with the key: %v", address, err)
		}
		note, err := g.cfg.Notes.Find(address)
		if err != nil || note.KeyFile != file {
			t.Errorf("the note of %s: %v, %v", address, note, err)
		}
	}
	if _, err := g.Client().ListRuns(t.Context(), &harnessv1.ListRunsRequest{}); err != nil {
		t.Errorf("inside the process: %v", err)
	}
	if len(g.notices) != 0 {
		t.Errorf("a new data directory is remarked upon: %q", g.notices)
	}
	if err := g.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if note, err := g.cfg.Notes.Find(g.Addr(workflow.Gateway)); !errors.Is(err, localkey.ErrNoNote) {
		t.Errorf("after the end: %v, %v", note, err)
	}
}

func TestHTTPOnLoopbackRequiresTheKey(t *testing.T) {
	g := startGateway(t, Config{})
	get := func(path, token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.Addr(workflow.Gateway)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/v1/runs", "", http.StatusUnauthorized},
		{"/v1/runs", localkey.New(), http.StatusUnauthorized},
		{"/v1/runs", g.key(t), http.StatusOK},
		{"/", "", http.StatusOK},
	} {
		code, body := get(c.path, c.token)
		if code != c.want || code == http.StatusUnauthorized && (!strings.Contains(body, KeyFile) || strings.Contains(body, g.cfg.Data)) {
			t.Errorf("%s with %q: %d %s", c.path, c.token, code, body)
		}
	}
}

func TestTokensReplaceTheKeyAtTheAddress(t *testing.T) {
	const token = "0123456789abcdef"
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := access.Open(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, Config{Tokens: tokens})
	at := g.Addr(workflow.Gateway)
	refused(t, "the key", "--tokens", list(t, at, g.key(t)))
	if err := list(t, at, token); err != nil {
		t.Error(err)
	}
	if note, err := g.cfg.Notes.Find(at); !errors.Is(err, localkey.ErrNoNote) {
		t.Errorf("the key is noted: %v, %v", note, err)
	}
	refused(t, "a token at the socket", KeyFile, list(t, g.socket(), token))
	if err := list(t, g.socket(), g.key(t)); err != nil {
		t.Error(err)
	}
}

func TestOpenLoopbackRequiresNothing(t *testing.T) {
	g := startGateway(t, Config{OpenLoopback: true})
	for _, address := range []string{g.Addr(workflow.Gateway), g.socket()} {
		if err := list(t, address, ""); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := os.Stat(filepath.Join(g.cfg.Data, KeyFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key is made: %v", err)
	}
}

func TestKeyFileIsUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.key")
	g := startGateway(t, Config{KeyFile: file})
	key, err := localkey.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{g.Addr(workflow.Gateway), g.socket()} {
		refused(t, address, "--key-file", list(t, address, ""))
		if err := list(t, address, key); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	if conn, held, err := Attach(t.Context(), g.cfg.Data); err != nil || !held {
		t.Errorf("attach: %v, %v", held, err)
	} else {
		_, err := harnessv1.NewGatewayServiceClient(conn).ListRuns(t.Context(), &harnessv1.ListRunsRequest{})
		if err = errors.Join(err, conn.Close()); err != nil {
			t.Errorf("a command with --data: %v", err)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Attach(t.Context(), g.cfg.Data); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
	// The running gateway refuses the key that others could read, and so does a start.
	refused(t, g.socket(), "--key-file", list(t, g.socket(), key))
	renewed, err := localkey.Read(file)
	if err != nil || renewed == key || list(t, g.socket(), renewed) != nil {
		t.Errorf("renewed: %t, %v", renewed != key, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := Start(t.Context(), Config{Data: t.TempDir(), KeyFile: file, Roles: []string{workflow.Gateway}})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := localkey.Read(file); err != nil || again == renewed {
		t.Errorf("a start with a key that others can read: renewed %t, %v", again != renewed, err)
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOlderDataDirectoryIsRemarkedUponOnce: scripts of its user now need the key.
func TestOlderDataDirectoryIsRemarkedUponOnce(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, lockFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0} {
		g := startGateway(t, Config{Data: data})
		if len(g.notices) != want || want == 1 && !strings.Contains(g.notices[0], "docs/upgrading.md") {
			t.Errorf("start %d: %q", i+1, g.notices)
		}
		if err := g.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeyIsInNoFileWhereCommandsAreNotConfined: it is shown once, and a key of an earlier
// start is removed.
func TestKeyIsInNoFileWhereCommandsAreNotConfined(t *testing.T) {
	data := t.TempDir()
	earlier, _, err := localkey.Ensure(filepath.Join(data, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, Config{
		Data: data, Roles: []string{workflow.Gateway, workflow.ToolHost},
		Confined: func() bool { return false },
	})
	if len(g.notices) != 1 || !strings.Contains(g.notices[0], localkey.Prefix) {
		t.Fatalf("the notices are %q", g.notices)
	}
	_, rest, _ := strings.Cut(g.notices[0], localkey.Prefix)
	key, at := localkey.Prefix+rest, g.Addr(workflow.Gateway)
	for _, wrong := range []string{"", earlier} {
		refused(t, "with "+wrong, "printed when it started", list(t, at, wrong))
	}
	if err := list(t, at, key); err != nil {
		t.Error(err)
	}
	if err := list(t, g.socket(), ""); err != nil {
		t.Errorf("a process of a terminal at the socket: %v", err)
	}
	if note, err := g.cfg.Notes.Find(at); !errors.Is(err, localkey.ErrNoNote) {
		t.Errorf("%v, %v", note, err)
	}
	err = filepath.WalkDir(filepath.Dir(data), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil && bytes.Contains(raw, []byte(localkey.Prefix)) {
			err = fmt.Errorf("%s has a key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
