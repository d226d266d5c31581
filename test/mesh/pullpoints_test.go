package mesh

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// pullPoint is a call that waits for an answer from outside: for text, or for a denial with a reason.
type pullPoint struct {
	kind, call, text, reason string
	// result is what the model reads then.
	result string
}

// input returns the answer as gateways take it.
func (p pullPoint) input(callID string) (*harnessv1.ToolAnswer, *harnessv1.Approval) {
	if p.reason != "" {
		return nil, &harnessv1.Approval{CallId: callID, Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: p.reason}
	}
	return &harnessv1.ToolAnswer{CallId: callID, Result: content.Inline(p.text)}, nil
}

// answerWays are the ways in which a client answers. Each returns when the answer is stored.
var answerWays = map[string]func(context.Context, *testing.T, *meshtest.Mesh, string, string, pullPoint){
	"command line": func(_ context.Context, _ *testing.T, m *meshtest.Mesh, run, callID string, p pullPoint) {
		args := []string{"answer", run, callID, p.text}
		if p.reason != "" {
			args = []string{"approve", run, callID, "--deny", "--reason", p.reason}
		}
		m.Harness(append(args, "--no-resume", "--server", m.Gateway())...)
	},
	"RPC": func(ctx context.Context, t *testing.T, m *meshtest.Mesh, run, callID string, p pullPoint) {
		r := &harnessv1.SendInputRequest{RunId: run, RequestId: "answer"}
		if answer, approval := p.input(callID); approval != nil {
			r.Input = &harnessv1.SendInputRequest_Approval{Approval: approval}
		} else {
			r.Input = &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: answer}
		}
		if _, err := m.Client().SendInput(ctx, r); err != nil {
			t.Error(err)
		}
	},
	"stream": func(ctx context.Context, t *testing.T, m *meshtest.Mesh, run, callID string, p pullPoint) {
		stream, err := m.Client().Run(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.CloseSend() }()
		r := &harnessv1.RunRequest{RequestId: "answer"}
		if answer, approval := p.input(callID); approval != nil {
			r.Request = &harnessv1.RunRequest_Approval{Approval: approval}
		} else {
			r.Request = &harnessv1.RunRequest_ToolAnswer{ToolAnswer: answer}
		}
		for _, r := range []*harnessv1.RunRequest{{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{RunId: run}}}, r} {
			if err := stream.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		for {
			u, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if receipt := u.GetUpdate().GetReceipt(); receipt.GetRequestId() == "answer" {
				if receipt.GetError() != "" {
					t.Error(receipt.GetError())
				}
				return
			}
		}
	},
	"tools/call": func(ctx context.Context, t *testing.T, m *meshtest.Mesh, run, callID string, p pullPoint) {
		arguments := map[string]any{"run_id": run, "call_id": callID, "request_id": "answer"}
		if p.reason != "" {
			arguments["decision"], arguments["reason"] = "deny", p.reason
		} else {
			arguments["text"] = p.text
		}
		if answered, text := callGateway(ctx, t, m, "answer", arguments); answered == nil {
			t.Error(text)
		}
	},
}

// TestSystemPullPointsAreTheSameForEveryClient: a call of each kind that waits takes its answer from the command line, a call,
// a stream and the tool of a model. The model reads the same, and the log has one answer.
func TestSystemPullPointsAreTheSameForEveryClient(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	ctx := t.Context()
	for _, p := range []pullPoint{
		{kind: "client_tool", call: "get_weather, arguments: {town: Bern}", text: "sunny, 24 degrees", result: "sunny, 24 degrees"},
		{kind: "question", call: "ask_user, arguments: {question: \"Which colour?\"}", text: "green", result: "green"},
		{kind: "approval", call: "run_command, arguments: {command: echo done >> out}", reason: "not today", result: "not today"},
	} {
		results := map[string]string{}
		for _, way := range slices.Sorted(maps.Keys(answerWays)) {
			id := "pull-" + p.kind + "-" + strings.NewReplacer(" ", "-", "/", "-").Replace(way)
			s := spec(scriptFile(id, "turns:\n  - {calls: [{name: "+p.call+"}]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n"), newWorkspace(t))
			s.ClientTools, s.Config.Tools.Yolo, s.Config.Sandbox = weather(), proto.Bool(false), asking()
			if _, err := m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: id, RequestId: id, Spec: s}); err != nil {
				t.Fatal(err)
			}
			var call *harnessv1.PendingCall
			waittest.Eventually(t, id+" waits", func() bool {
				r, err := m.Client().ListPending(ctx, &harnessv1.ListPendingRequest{RunId: id})
				if err != nil || len(r.GetPending()) != 1 {
					return false
				}
				call = r.GetPending()[0].GetCall()
				return true
			})
			if call.GetKind() != p.kind {
				t.Fatalf("%s waits for %v", id, call)
			}
			answerWays[way](ctx, t, m, id, call.GetCallId(), p)
			entries := m.Ended(runlog.Run{Namespace: "default", ID: id}, 0)
			if status := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetStatus(); status != harnessv1.RunStatus_RUN_STATUS_DONE {
				t.Errorf("%s: %v", id, status)
			}
			var answers int
			for _, e := range events(entries) {
				answers += count(e.GetInputAccepted() != nil)
			}
			for _, e := range entries {
				for _, message := range e.Record.GetAppended() {
					if message.GetToolCallId() == call.GetCallId() {
						results[way] += content.Text(message.GetContent())
					}
				}
			}
			if answers != 1 || !strings.Contains(results[way], p.result) {
				t.Errorf("%s: %d answers, the model reads %q", id, answers, results[way])
			}
		}
		for way, result := range results {
			if result != results["RPC"] {
				t.Errorf("%s: by %s the model reads %q, by RPC %q", p.kind, way, result, results["RPC"])
			}
		}
	}
}
