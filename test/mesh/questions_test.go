package mesh

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const questioned = `turns:
  - {calls: [{name: mcp__trips__ask, arguments: {kind: KIND}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// startQuestioned starts a run whose server asks.
func startQuestioned(ctx context.Context, t *testing.T, m *meshtest.Mesh, id, kind string, change ...func(*harnessv1.RunSpec)) (run runlog.Run, lines func() string) {
	t.Helper()
	workspace := newWorkspace(t)
	s := spec(scriptFile(id, strings.ReplaceAll(questioned, "KIND", kind)), workspace)
	withServers(workspace, servertest.Server("trips", servertest.Questions+"=1"))(s)
	for _, c := range change {
		c(s)
	}
	if _, err := m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: id, RequestId: id, Spec: s}); err != nil {
		t.Fatal(err)
	}
	return runlog.Run{Namespace: "default", ID: id}, func() string {
		data, _ := os.ReadFile(filepath.Join(workspace, "out"))
		return string(data)
	}
}

// asked waits until a run waits for the answer to a question of a server.
func asked(ctx context.Context, t *testing.T, m *meshtest.Mesh, run runlog.Run) (call *harnessv1.PendingCall) {
	t.Helper()
	waittest.Eventually(t, run.ID+" asks", func() bool {
		r, err := m.Client().ListPending(ctx, &harnessv1.ListPendingRequest{RunId: run.ID})
		if err != nil || len(r.GetPending()) != 1 || r.GetPending()[0].GetCall().GetQuestion() == nil {
			return false
		}
		call = r.GetPending()[0].GetCall()
		return true
	})
	return call
}

// TestSystemQuestionOutlivesEveryProcess: while the question of a server waits, every process of the mesh
// is killed, the bus too. After the answer the call continues, once.
func TestSystemQuestionOutlivesEveryProcess(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second, NATS: meshtest.NATSConfig{SyncAlways: true}})
	ctx := t.Context()
	run, lines := startQuestioned(ctx, t, m, "questioned", "form")
	call := asked(ctx, t, m, run)
	q := call.GetQuestion()
	if call.GetKind() != "question" || q.GetServer() != "trips" || q.GetState() != nil || content.Text(q.GetRequests()[0].GetMessage()) != "Where to?" {
		t.Errorf("it waits with %v", call)
	}
	for _, role := range meshtest.Roles {
		m.Process(role).Kill()
	}
	m.Bus.Kill(0)
	m.Bus.Restart(0)
	m.Bus.AwaitReady(0)
	for _, role := range meshtest.Roles {
		m.Start(role)
	}
	for _, role := range meshtest.Roles {
		m.AwaitReady(role)
	}
	answer := func(id, text string) error {
		_, err := waittest.Retry(ctx, func(ctx context.Context) (*harnessv1.SendInputResponse, error) {
			return m.Client().SendInput(ctx, &harnessv1.SendInputRequest{RunId: run.ID, RequestId: id, Input: &harnessv1.SendInputRequest_ToolAnswer{
				ToolAnswer: &harnessv1.ToolAnswer{CallId: call.GetCallId(), Result: content.Inline(text), Round: q.GetRound()},
			}})
		})
		return err
	}
	if err := answer("a", `{"city":"Rome","nights":40}`); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "tool_answer.result: nights: maximum") {
		t.Errorf("a value that does not fit: %v", err)
	}
	if err := answer("b", `{"city":"Rome","nights":2}`); err != nil {
		t.Fatal(err)
	}
	if err := answer("c", `{"city":"Oslo","nights":2}`); status.Code(err) != codes.AlreadyExists {
		t.Errorf("a second answer: %v", err)
	}
	entries := m.Ended(run, 0)
	want := "asking form\nanswered form {\"trip\":{\"action\":\"accept\",\"content\":{\"city\":\"Rome\",\"nights\":2}}}\n"
	if got := lines(); got != want {
		t.Errorf("lines %q", got)
	}
	if err := answer("d", `{"city":"Oslo","nights":2}`); status.Code(err) != codes.AlreadyExists {
		t.Errorf("an answer after the end: %v", err)
	}
	var calls, questions, answers, results int
	for _, e := range events(entries) {
		switch v := e.GetEvent().(type) {
		case *harnessv1.Event_ToolCall:
			calls += count(v.ToolCall.GetTool() == call.GetTool())
		case *harnessv1.Event_ToolQuestion:
			questions++
		case *harnessv1.Event_ToolAnswer:
			answers++
		case *harnessv1.Event_ToolResult:
			results += count(v.ToolResult.GetTool() == call.GetTool())
		}
	}
	if calls != 1 || questions != 1 || answers != 1 || results != 1 {
		t.Errorf("%d calls, %d questions, %d answers, %d results", calls, questions, answers, results)
	}
	if got := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetSpent().GetToolCallsTotal(); got != 2 {
		t.Errorf("%d calls were counted", got)
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// TestSystemQuestionsAreAnsweredByEveryClient: the question of a server takes its answer from the command
// line, a call, a stream and the tool of a model.
func TestSystemQuestionsAreAnsweredByEveryClient(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	ctx := t.Context()
	for name, give := range map[string]func(run runlog.Run, call *harnessv1.PendingCall){
		"command": func(run runlog.Run, _ *harnessv1.PendingCall) {
			m.Harness("answer", run.ID, "--decline", "--no-resume", "--server", m.Gateway())
		},
		"call": func(run runlog.Run, call *harnessv1.PendingCall) {
			if _, err := m.Client().SendInput(ctx, &harnessv1.SendInputRequest{RunId: run.ID, RequestId: "a", Input: &harnessv1.SendInputRequest_ToolAnswer{
				ToolAnswer: &harnessv1.ToolAnswer{CallId: call.GetCallId(), Action: harnessv1.AnswerAction_ANSWER_ACTION_DECLINE},
			}}); err != nil {
				t.Error(err)
			}
		},
		"stream": func(run runlog.Run, call *harnessv1.PendingCall) {
			stream, err := m.Client().Run(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stream.CloseSend() }()
			for _, r := range []*harnessv1.RunRequest{
				{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{RunId: run.ID}}},
				{RequestId: "a", Request: &harnessv1.RunRequest_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: call.GetCallId(), IsError: true}}},
			} {
				if err := stream.Send(r); err != nil {
					t.Fatal(err)
				}
			}
			for {
				r, err := stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				if r.GetUpdate().GetReceipt().GetRequestId() == "a" {
					return
				}
			}
		},
		"tools": func(run runlog.Run, call *harnessv1.PendingCall) {
			answered, text := callGateway(ctx, t, m, "answer", map[string]any{"run_id": run.ID, "call_id": call.GetCallId(), "action": "decline", "round": 1, "request_id": "a"})
			if answered == nil {
				t.Error(text)
			}
		},
	} {
		run, lines := startQuestioned(ctx, t, m, "questioned-"+name, "form")
		give(run, asked(ctx, t, m, run))
		entries := m.Ended(run, 0)
		if got := lines(); got != "asking form\nanswered form {\"trip\":{\"action\":\"decline\"}}\n" {
			t.Errorf("%s: lines %q", name, got)
		}
		if s := entries[len(entries)-1].Record.GetStep().GetSnapshot(); s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || len(s.GetPendingToolCalls()) > 0 {
			t.Errorf("%s: ended as %v", name, s.GetStatus())
		}
	}
}
