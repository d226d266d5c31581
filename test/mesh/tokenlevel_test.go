package mesh

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

const (
	rootedToken    = "token-with-a-folder-0"
	boundToken     = "token-without-approve"
	unboundedToken = "token-without-a-bound"
)

// leaver tries to write a file outside of its workspace: with a word for a person, and without.
const leaver = `turns:
  - {calls: [{name: run_command, arguments: {command: 'echo run >> %[1]s', unconfined: to leave}}]}
  - {calls: [{name: run_command, arguments: {command: 'echo run >> %[1]s; echo within >> out'}}]}
  - {calls: [{name: %[2]s}]}
  - {calls: [{name: work_complete, arguments: {summary: tried}}]}
`

// outOfTheSandbox are what a request may say to leave the sandbox, by field.
var outOfTheSandbox = map[string]func(*harnessv1.RunSpec){
	"spec.config.sandbox.level":      func(s *harnessv1.RunSpec) { s.Config.Sandbox = &harnessv1.SandboxConfig{Level: sandbox.Off} },
	"spec.config.sandbox.unconfined": func(s *harnessv1.RunSpec) { s.Config.Sandbox = &harnessv1.SandboxConfig{Unconfined: true} },
	"spec.agent.hooks[0].unconfined": func(s *harnessv1.RunSpec) {
		s.Agent.Hooks = []*harnessv1.Hook{{Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Command: "true", Unconfined: true}}
	},
}

// TestSystemRunsOfTokensStayConfined: each role is a process, and the tool host reaches the level
// kernel and demands nothing itself. No run that a token has started, over gRPC, HTTP or /mcp,
// runs anything below kernel, and its sub-agents do not either.
func TestSystemRunsOfTokensStayConfined(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Without: meshtest.Roles})
	tokens := m.Write("tokens", fmt.Sprintf("%s * roots=%s\n%s * may=commands,scripts,hooks\n%s\n", rootedToken, scripts, boundToken, unboundedToken))
	for _, role := range []string{"repair", "turn", "stopdecision", "compaction", "inference"} {
		m.Start(role)
	}
	m.Start("gateway", meshtest.Args("--tokens", tokens))
	m.Start("gateway-2", meshtest.Args("--tokens", tokens, "--token-sandbox-least", "full"))
	m.Start("gateway-3", meshtest.Args("--tokens", tokens, "--token-sandbox-least", "off"))
	m.Start("toolhost", meshtest.Env("PATH="+withoutBubblewrap(t)))
	for _, name := range append(slices.Clone(meshtest.Roles), "gateway-2", "gateway-3") {
		m.AwaitReady(name)
	}
	if log := m.Process("gateway-3").Stderr(); !strings.Contains(log, "WARNING: --token-sandbox-least off") {
		t.Errorf("there is no warning:\n%s", log)
	}
	if log := m.Process("gateway").Stderr(); strings.Contains(log, "--token-sandbox-least") {
		t.Errorf("there is a warning:\n%s", log)
	}
	addressOf := func(name string) string {
		line, _ := m.Process(name).Line("ready role=gateway addr=")
		return strings.Fields(strings.TrimPrefix(line, "ready role=gateway addr="))[0]
	}

	outside := t.TempDir()
	spec := func(run string) *harnessv1.RunSpec {
		file, workspace := filepath.Join(outside, run), newWorkspace(t)
		s := spec(scriptFile(run, fmt.Sprintf(leaver, file, "helper, arguments: {prompt: Leave.}")), workspace)
		s.Config.Tools, s.Agent.Tools = nil, []*harnessv1.ToolRule{{Name: "*", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}}
		s.Agent.Agents = []*harnessv1.SubAgent{{
			Name: "helper", Description: "Helps.", Instructions: "Help.", Model: "script:" + scriptFile(run+"-helper", fmt.Sprintf(leaver, file, "work_item_list, arguments: {}")),
		}}
		return s
	}
	check := func(run string, least harnessv1.SandboxLevel, leaves bool) {
		t.Helper()
		entries := m.Ended(runlog.Run{Namespace: "default", ID: run}, 0)
		snapshot := entries[len(entries)-1].Record.GetStep().GetSnapshot()
		if got := snapshot.GetConfig().GetSandbox().GetLeast(); got != least {
			t.Errorf("%s: the least is %s, want %s", run, sandbox.Name(got), sandbox.Name(least))
		}
		all := entries
		for _, c := range snapshot.GetChildren() {
			all = append(all, m.Ended(runlog.Run{Namespace: "default", ID: c.GetRunId()}, 0)...)
		}
		ran := 0
		for _, e := range events(all) {
			if r := e.GetToolCall(); r != nil && r.GetTool() == "run_command" {
				ran++
				if r.GetSandboxLevel() < least {
					t.Errorf("%s: a call at %s", run, sandbox.Name(r.GetSandboxLevel()))
				}
			}
		}
		if _, err := os.Stat(filepath.Join(outside, run)); (err == nil) != leaves || ran == 0 {
			t.Errorf("%s: left the sandbox: %v, want %v; %d calls", run, err == nil, leaves, ran)
		}
	}

	grpcOf := func(name string) harnessv1.GatewayServiceClient {
		conn, err := grpc.NewClient(addressOf(name), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return harnessv1.NewGatewayServiceClient(conn)
	}
	with := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	client := grpcOf("gateway")
	post := func(token, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+m.Gateway()+"/v1/runs", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}

	for i, token := range []string{rootedToken, boundToken} {
		// What leaves the sandbox is refused, and named.
		for field, leave := range outOfTheSandbox {
			s := spec("refused")
			leave(s)
			_, err := client.StartRun(with(token), &harnessv1.StartRunRequest{Spec: s})
			if status.Code(err) != codes.PermissionDenied || !strings.HasPrefix(status.Convert(err).Message(), field+": ") {
				t.Errorf("%s, %s over gRPC: %v", token, field, err)
			}
			stream, err := client.Run(with(token))
			if err == nil {
				_ = stream.Send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Start{Start: &harnessv1.StartRunRequest{Spec: s}}})
				_, err = stream.Recv()
			}
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s, %s over a stream: %v", token, field, err)
			}
		}
		body := `{"goal": "Try.", "workspace": %q, "agent": {"model": "script:` + scriptFile("refused", "turns: []\n") + `"}, "config": {"sandbox": {"level": "off"}}}`
		if code, text := post(token, fmt.Sprintf(body, newWorkspace(t))); code != http.StatusForbidden || !strings.Contains(text, "sandbox.level") {
			t.Errorf("%s over HTTP: %d %s", token, code, text)
		}
		// A run that names none of them stays within.
		run := fmt.Sprintf("by-grpc-%d", i)
		if _, err := client.StartRun(with(token), &harnessv1.StartRunRequest{RunId: run, Spec: spec(run)}); err != nil {
			t.Fatal(err)
		}
		check(run, sandbox.Kernel, false)
		run = fmt.Sprintf("by-http-%d", i)
		s := spec(run)
		body = `{"run_id": %q, "goal": "Try.", "workspace": %q, "agent": {"model": %q, "tools": [{"name": "*", "policy": "allow"}],
			"agents": [{"name": "helper", "description": "Helps.", "instructions": "Help.", "model": %q}]}}`
		if code, text := post(token, fmt.Sprintf(body, run, s.GetWorkspace(), s.GetAgent().GetModel(), s.GetAgent().GetAgents()[0].GetModel())); code != http.StatusCreated {
			t.Fatalf("%d %s", code, text)
		}
		check(run, sandbox.Kernel, false)
		run = fmt.Sprintf("by-mcp-%d", i)
		startOverMCP(t, m, token, map[string]any{"goal": "Try.", "run_id": run, "workspace": newWorkspace(t), "model": "script:" + scriptFile(run, fmt.Sprintf(`turns:
  - {calls: [{name: run_command, arguments: {command: 'echo run >> %s', unconfined: to leave}}]}
  - {calls: [{name: work_complete, arguments: {summary: tried}}]}
`, filepath.Join(outside, run)))})
		entries := m.Ended(runlog.Run{Namespace: "default", ID: run}, 0)
		if got := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetConfig().GetSandbox().GetLeast(); got != sandbox.Kernel {
			t.Errorf("%s: the least is %s", run, sandbox.Name(got))
		}
		if _, err := os.Stat(filepath.Join(outside, run)); err == nil {
			t.Errorf("%s left the sandbox", run)
		}
		// Auto that ends below the level of the operator is refused at the start.
		_, err := grpcOf("gateway-2").StartRun(with(token), &harnessv1.StartRunRequest{Spec: spec("below")})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "reaches only kernel") || !strings.Contains(err.Error(), "started with a token") {
			t.Errorf("%s below the least: %v", token, err)
		}
		// Where the operator demands nothing, a request may still not leave the sandbox.
		s = spec("refused")
		s.Config.Sandbox = &harnessv1.SandboxConfig{Level: sandbox.Off}
		if _, err := grpcOf("gateway-3").StartRun(with(token), &harnessv1.StartRunRequest{Spec: s}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s at a gateway that demands nothing: %v", token, err)
		}
	}
	// A token with the right leaves the sandbox by naming that, and not otherwise.
	if _, err := client.StartRun(with(unboundedToken), &harnessv1.StartRunRequest{RunId: "stays", Spec: spec("stays")}); err != nil {
		t.Fatal(err)
	}
	check("stays", sandbox.Kernel, false)
	s := spec("leaves")
	s.Config.Sandbox = &harnessv1.SandboxConfig{Level: sandbox.Off}
	if _, err := client.StartRun(with(unboundedToken), &harnessv1.StartRunRequest{RunId: "leaves", Spec: s}); err != nil {
		t.Fatal(err)
	}
	check("leaves", sandbox.Auto, true)
	s = spec("named")
	s.Config.Sandbox = &harnessv1.SandboxConfig{Least: sandbox.Off}
	if _, err := client.StartRun(with(unboundedToken), &harnessv1.StartRunRequest{Spec: s}); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "sandbox.least") {
		t.Errorf("a spec names its least: %v", err)
	}
}

// withoutBubblewrap returns a folder with the programs of the tests, without bubblewrap.
func withoutBubblewrap(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sh", "cat", "git"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startOverMCP starts a run as another program with a token.
func startOverMCP(t *testing.T, m *meshtest.Mesh, token string, arguments map[string]any) {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: "http://" + m.Gateway() + "/mcp", HTTPClient: &http.Client{Transport: withKey{token}}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "start_run", Arguments: arguments})
	if err != nil || r.IsError {
		t.Fatalf("%v, %v", r, err)
	}
}
