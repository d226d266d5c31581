package mesh

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

const puzzled = `turns:
  - {calls: [{name: ask_user, arguments: {question: "Which line?"}}]}
  - {calls: [{name: run_command, arguments: {command: 'echo line >> out', unconfined: to test}}]}
  - {text: "It was refused.", calls: [{name: work_complete, arguments: {summary: done}}]}
`

// withKey makes requests with the key of the gateway.
type withKey struct{ key string }

// RoundTrip makes a request.
func (w withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.key)
	return http.DefaultTransport.RoundTrip(r)
}

// callGateway calls a tool of the gateway as another program. The result is nil if it is an error.
func callGateway(ctx context.Context, t *testing.T, m *meshtest.Mesh, tool string, arguments map[string]any) (result map[string]any, text string) {
	t.Helper()
	key, err := localkey.Read(filepath.Join(m.Data("gateway"), "gateway.key"))
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: "http://" + m.Gateway() + "/mcp", HTTPClient: &http.Client{Transport: withKey{key}}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text = r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		return nil, text
	}
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatalf("%s: %v: %s", tool, err, text)
	}
	return result, text
}

// TestSystemPullPointsOverMCP: another program starts a run over /mcp, waits for it, and answers what it
// waits for. It cannot approve, because it is a model and has no token that may.
func TestSystemPullPointsOverMCP(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	ctx := t.Context()
	call := func(tool string, arguments map[string]any) (map[string]any, string) {
		t.Helper()
		return callGateway(ctx, t, m, tool, arguments)
	}
	workspace := newWorkspace(t)
	start := map[string]any{
		"goal": "Ask first.", "run_id": "puzzled", "request_id": "one", "workspace": workspace, "model": "script:" + scriptFile("puzzled", puzzled),
	}
	for range 2 { // the same request starts no second run
		if r, text := call("start_run", start); r["run_id"] != "puzzled" {
			t.Fatal(text)
		}
	}
	waits := func(kind string) (callID string) {
		t.Helper()
		_, text := call("wait_run", map[string]any{"run_id": "puzzled", "seconds": 60})
		r, pending := call("list_pending", map[string]any{"run_id": "puzzled"})
		calls, _ := r["pending"].([]any)
		if len(calls) != 1 || !strings.Contains(text, `"PARKED"`) {
			t.Fatalf("%s\n%s", text, pending)
		}
		c := calls[0].(map[string]any)["call"].(map[string]any)
		if c["kind"] != kind {
			t.Fatalf("it waits for %v, want %s", c["kind"], kind)
		}
		return c["call_id"].(string)
	}
	if _, text := call("answer", map[string]any{"run_id": "puzzled", "call_id": waits("question"), "text": "the first", "request_id": "two"}); !strings.Contains(text, `"two"`) {
		t.Error(text)
	}
	id := waits("approval")
	if _, text := call("answer", map[string]any{"run_id": "puzzled", "call_id": id, "decision": "once"}); !strings.Contains(text, "a token with the right approve") {
		t.Errorf("a model approved: %s", text)
	}
	if _, text := call("answer", map[string]any{"run_id": "puzzled", "call_id": id, "decision": "maybe"}); !strings.Contains(text, "must be once, run or deny") {
		t.Error(text)
	}
	call("answer", map[string]any{"run_id": "puzzled", "call_id": id, "decision": "deny", "reason": "no"})
	if _, text := call("wait_run", map[string]any{"run_id": "puzzled", "seconds": 60}); !strings.Contains(text, `"DONE"`) {
		t.Error(text)
	}
	if _, text := call("list_runs", map[string]any{"status": []string{"done"}}); !strings.Contains(text, `"puzzled"`) {
		t.Error(text)
	}
	if _, text := call("run_status", map[string]any{"run_id": "none"}); !strings.Contains(text, "NotFound") {
		t.Error(text)
	}
	var answers int
	for _, e := range events(m.Ended(runlog.Run{Namespace: "default", ID: "puzzled"}, 0)) {
		if a := e.GetApprovalAnswered(); a.GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY && a.GetReason() == "no" {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("%d answers", answers)
	}
}
