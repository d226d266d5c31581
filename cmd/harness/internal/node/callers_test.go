package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// The callers of the tests, by their tokens.
const (
	nina = "token-of-nina-0001"
	otto = "token-of-otto-0002"
)

// askingScript asks for an approval, then for an answer.
const askingScript = `turns:
  - {calls: [{name: list_directory, arguments: {path: "."}}]}
  - {calls: [{name: ask_user, arguments: {question: "Which?"}}]}
  - {calls: [{name: work_complete, arguments: {summary: Done.}}]}
`

// asking starts a mesh with two tokens whose runs follow askingScript.
func asking(t *testing.T) (g *gatewayNode, spec *harnessv1.RunSpec) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "asking.yaml")
	if err := os.WriteFile(script, []byte(askingScript), 0o600); err != nil {
		t.Fatal(err)
	}
	g = startGateway(t, Config{
		Roles: []string{workflow.AllRoles}, Confined: func() bool { return true }, Scripts: dir,
		Tokens: tokensOf(t, nina+" name=nina\n"+otto+" * name=otto\n"),
	})
	return g, &harnessv1.RunSpec{
		Goal: content.Inline("Ask."), Workspace: t.TempDir(),
		Agent: &harnessv1.AgentSpec{Model: "script:" + script, Tools: []*harnessv1.ToolRule{{Name: "list_directory", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}}},
	}
}

// follower reads the events of a run.
type follower struct {
	t      *testing.T
	stream harnessv1.GatewayService_WatchRunClient
	named  []string // the events that have a caller, as "field caller"
}

func followRun(t *testing.T, client harnessv1.GatewayServiceClient, run string) *follower {
	t.Helper()
	stream, err := client.WatchRun(t.Context(), &harnessv1.WatchRunRequest{RunId: run, NoDeltas: true})
	if err != nil {
		t.Fatal(err)
	}
	return &follower{t: t, stream: stream}
}

// until reads up to an event of a kind and returns it.
func (f *follower) until(kind string) *harnessv1.Event {
	f.t.Helper()
	for {
		r, err := f.stream.Recv()
		if err != nil {
			f.t.Fatalf("before %s: %v, %q", kind, err, f.named)
		}
		e := r.GetUpdate().GetEvent()
		if e == nil {
			continue
		}
		f.named = append(f.named, withCaller(e)...)
		if m := e.ProtoReflect(); string(m.WhichOneof(m.Descriptor().Oneofs().ByName("event")).Name()) == kind {
			return e
		}
	}
}

// withCaller returns an event that has a caller as "field caller".
func withCaller(e *harnessv1.Event) []string {
	m := e.ProtoReflect()
	kind := m.WhichOneof(m.Descriptor().Oneofs().ByName("event"))
	payload := m.Get(kind).Message()
	if f := payload.Descriptor().Fields().ByName("caller"); f != nil {
		return []string{string(kind.Name()) + " " + payload.Get(f).String()}
	}
	return nil
}

// TestRecordsNameTheirCallers: those that started, approved and answered in a run,
// by the lines of the tokens, whatever a client claims.
func TestRecordsNameTheirCallers(t *testing.T) {
	g, spec := asking(t)
	byNina := harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), nina))
	byOtto := harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), otto))
	byUser := harnessv1.NewGatewayServiceClient(dialPlain(t, g.socket(), g.key(t)))
	claimed := metadata.AppendToOutgoingContext(t.Context(), "harness-caller", "otto")
	started, err := byNina.StartRun(claimed, &harnessv1.StartRunRequest{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	run := started.GetRunId()
	events := followRun(t, byUser, run)
	if _, err := byOtto.SendInput(t.Context(), &harnessv1.SendInputRequest{RunId: run, Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
		CallId: events.until("approval_requested").GetApprovalRequested().GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
	}}}); err != nil {
		t.Fatal(err)
	}
	events.until("tool_result")
	question := events.until("tool_call").GetToolCall().GetCallId()
	if err := postAs(t, g, nina, "/v1/runs/"+run+"/answers", fmt.Sprintf(`{"call_id":%q,"content":"This one."}`, question)); err != nil {
		t.Fatal(err)
	}
	events.until("session_complete")
	if _, err := byUser.SendInput(t.Context(), &harnessv1.SendInputRequest{RunId: run, Input: &harnessv1.SendInputRequest_UserMessage{
		UserMessage: &harnessv1.UserMessage{Content: content.Inline("Again.")},
	}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"session_start nina", "approval_answered otto", "input_accepted otto", "input_accepted nina", "session_start local", "input_accepted local",
	}
	for events = followRun(t, byUser, run); len(events.named) < len(want); {
		events.until("input_accepted")
	}
	if !slices.Equal(events.named, want) {
		t.Errorf("%q, want %q", events.named, want)
	}
	if r, err := byUser.GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: run}); err != nil || r.GetRun().GetStartedBy() != "nina" {
		t.Errorf("started by %q, %v", r.GetRun().GetStartedBy(), err)
	}
}

// TestRecordsNameTheCallerThatStoppedARun by an interrupt or a cancel.
func TestRecordsNameTheCallerThatStoppedARun(t *testing.T) {
	g, spec := asking(t)
	byNina := harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), nina))
	byOtto := harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), otto))
	for want, stop := range map[string]func(run string) error{
		"run_interrupted otto": func(run string) error {
			_, err := byOtto.InterruptRun(t.Context(), &harnessv1.InterruptRunRequest{RunId: run})
			return err
		},
		"run_cancelled otto": func(run string) error {
			_, err := byOtto.CancelRun(t.Context(), &harnessv1.CancelRunRequest{RunId: run})
			return err
		},
	} {
		started, err := byNina.StartRun(t.Context(), &harnessv1.StartRunRequest{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		events := followRun(t, byNina, started.GetRunId())
		events.until("approval_requested")
		if err := stop(started.GetRunId()); err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(want, " ")
		if events.until(kind); !slices.Contains(events.named, want) || !slices.Contains(events.named, "input_accepted otto") {
			t.Errorf("%q, want %q", events.named, want)
		}
	}
}

// postAs sends a request over HTTP with a token.
func postAs(t *testing.T, g *gatewayNode, token, path, body string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.Addr(workflow.Gateway)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 != 2 {
		var problem any
		_ = json.NewDecoder(answer.Body).Decode(&problem)
		return fmt.Errorf("%s: %v", answer.Status, problem)
	}
	return nil
}
