package node

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// scriptsAt starts a mesh in one process with a script in its folder and one elsewhere.
func scriptsAt(t *testing.T, cfg Config) (g *gatewayNode, inside, outside string) {
	t.Helper()
	dir := t.TempDir()
	inside, outside = filepath.Join(dir, "scripts", "in.yaml"), filepath.Join(dir, "out.yaml")
	if err := os.Mkdir(filepath.Dir(inside), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{inside, outside} {
		if err := os.WriteFile(path, []byte("turns:\n  - {calls: [{name: work_complete, arguments: {summary: Done.}}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cfg.Scripts != "" {
		cfg.Scripts = filepath.Dir(inside)
	}
	cfg.Roles, cfg.Confined = []string{workflow.AllRoles}, func() bool { return true }
	return startGateway(t, cfg), inside, outside
}

// scripted starts a run whose model is a script, and returns how it ends.
func scripted(t *testing.T, client harnessv1.GatewayServiceClient, file string) (string, error) {
	t.Helper()
	started, err := client.StartRun(t.Context(), &harnessv1.StartRunRequest{Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Finish."), Workspace: t.TempDir(), Agent: &harnessv1.AgentSpec{Model: "script:" + file},
	}})
	if err != nil {
		return "", err
	}
	stream, err := client.WatchRun(t.Context(), &harnessv1.WatchRunRequest{RunId: started.GetRunId(), Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	if err != nil {
		return "", err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return "", err
		}
		if result := r.GetUpdate().GetResult(); result != nil {
			return result.GetReason().GetKind() + " " + result.GetReason().GetMessage(), nil
		}
	}
}

// TestScriptsOverTheNetworkAreThoseOfTheOperator: a device is opened for no caller, and the
// local socket may name every file.
func TestScriptsOverTheNetworkAreThoseOfTheOperator(t *testing.T) {
	for name, cfg := range map[string]Config{"with a folder": {Scripts: "set"}, "without one": {}, "open": {OpenLoopback: true}} {
		t.Run(name, func(t *testing.T) {
			g, inside, outside := scriptsAt(t, cfg)
			key := ""
			if !cfg.OpenLoopback {
				key = g.key(t)
			}
			network := harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), key))
			socket := harnessv1.NewGatewayServiceClient(dialPlain(t, g.socket(), key))
			for _, file := range []string{inside, outside, "/dev/zero"} {
				ended, err := scripted(t, network, file)
				switch {
				case cfg.Scripts != "" && file == inside:
					if err != nil || !strings.HasPrefix(ended, "agent_done ") {
						t.Errorf("%s over the network: %s, %v", file, ended, err)
					}
				case status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "spec.agent.model: ") || !strings.Contains(err.Error(), "--scripts"):
					t.Errorf("%s over the network: %s, %v", file, ended, err)
				}
				ended, err = scripted(t, socket, file)
				want := "agent_done "
				if file == "/dev/zero" {
					want = "provider_error "
				}
				if err != nil || !strings.HasPrefix(ended, want) {
					t.Errorf("%s over the socket: %s, %v", file, ended, err)
				}
			}
			if code, text := post(t, g, key, outside); code != http.StatusBadRequest || !strings.Contains(text, "--scripts") {
				t.Errorf("over HTTP: %d, %s", code, text)
			}
		})
	}
}

// post starts a run over HTTP.
func post(t *testing.T, g *gatewayNode, key, script string) (int, string) {
	t.Helper()
	body := `{"goal":"Finish.","workspace":"/","agent":{"model":"script:` + script + `"}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.Addr(workflow.Gateway)+"/v1/runs", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text.String()
}

// TestWorkerOfAMeshOpensScriptsOfItsFolder: another process has started the run.
func TestWorkerOfAMeshOpensScriptsOfItsFolder(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "scripts", "in.yaml"), filepath.Join(dir, "out.yaml")
	if err := os.Mkdir(filepath.Dir(inside), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{inside, outside} {
		if err := os.WriteFile(path, []byte("turns: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		nats, dir, file, problem string
	}{
		"its folder":                 {"nats://x", filepath.Dir(inside), inside, ""},
		"another folder":             {"nats://x", filepath.Dir(inside), outside, "--scripts"},
		"no folder":                  {"nats://x", "", inside, "--scripts DIR"},
		"one process":                {"", filepath.Dir(inside), outside, ""},
		"one process without folder": {"", "", inside, ""},
	} {
		n := &Node{cfg: Config{NATS: c.nats, Scripts: c.dir}}
		n.mesh = &mesh{n: n}
		if _, err := n.scripts().Load(c.file); c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
	}
	for path, problem := range map[string]string{outside: "expected a folder", dir + "/none": "no such file"} {
		if _, err := Start(t.Context(), Config{Data: t.TempDir(), Scripts: path}); err == nil || !strings.HasPrefix(err.Error(), "--scripts: ") || !strings.Contains(err.Error(), problem) {
			t.Errorf("--scripts %s: %v", path, err)
		}
	}
}
