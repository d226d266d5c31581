package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

func weather() []*harnessv1.ToolSpec {
	return []*harnessv1.ToolSpec{{
		Name: "get_weather", Description: "The weather in a town.",
		ParametersSchema: `{"type":"object","properties":{"town":{"type":"string"}},"required":["town"]}`,
	}}
}

// asking lets commands have network, so that they ask at every level of confinement.
func asking() *harnessv1.SandboxConfig {
	return &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL}}
}

// asker takes a run through everything that waits for others.
type asker struct {
	*testing.T
	ctx    context.Context
	m      *meshtest.Mesh
	client harnessv1.GatewayServiceClient
	run    string
}

func newAsker(t *testing.T, run string) *asker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Patience)
	t.Cleanup(cancel)
	m := meshtest.Start(t, bin, meshtest.Config{})
	return &asker{T: t, ctx: ctx, m: m, client: m.Client(), run: run}
}

func (a *asker) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// awaitStop waits until the run is parked or has ended for a reason and returns its
// result.
func (a *asker) awaitStop(kind string) *harnessv1.HarnessResult {
	a.Helper()
	var result *harnessv1.HarnessResult
	waittest.Eventually(a, "the run parks or ends: "+kind, func() bool {
		r, err := a.client.GetRun(a.ctx, &harnessv1.GetRunRequest{RunId: a.run})
		a.must(err)
		result = r.GetResult()
		return result.GetReason().GetKind() == kind
	})
	return result
}

// restart kills every process, including the bus, and restarts them.
func (a *asker) restart() {
	a.Helper()
	for _, role := range meshtest.Roles {
		a.m.Process(role).Kill()
	}
	a.m.Bus.Kill(0)
	a.m.Bus.Restart(0)
	for _, role := range meshtest.Roles {
		a.m.Start(role)
	}
	for _, role := range meshtest.Roles {
		a.m.AwaitReady(role)
	}
}

// TestStory starts a run with one client, answers its tool with another, approves a
// call and answers a question on the command line, and extends the budget with a third
// client. All processes are killed while the run waits. The log must contain the whole
// story.
func TestStory(t *testing.T) {
	t.Parallel()
	a := newAsker(t, "story")
	workspace := newWorkspace(t)
	script := a.m.Write("story.yaml", `turns:
  - {text: "What is the weather?", calls: [{name: get_weather, arguments: {town: Bern}}]}
  - {when: {last_contains: "sunny, 24 degrees"}, text: "Now the deed.", calls: [{name: run_command, arguments: {command: 'echo done >> out'}}]}
  - {text: "One thing is left.", calls: [{name: ask_user, arguments: {question: "Which colour?", options: [blue, green]}}]}
  - {when: {last_contains: "green"}, calls: [{name: work_complete, arguments: {summary: told}}]}
`)

	first, err := a.client.Run(a.ctx)
	a.must(err)
	a.must(first.Send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Start{Start: &harnessv1.StartRunRequest{
		RunId: a.run, Spec: &harnessv1.RunSpec{
			Goal: content.Inline("Tell me a story."), Workspace: workspace, ClientTools: weather(),
			Agent:  &harnessv1.AgentSpec{Model: "script:" + script},
			Config: &harnessv1.LoopConfig{Budgets: &harnessv1.Budgets{Turns: proto.Uint32(2)}, Sandbox: asking()},
		},
	}}}))
	var asked *harnessv1.ToolCalled
	for asked == nil {
		r, err := first.Recv()
		a.must(err)
		asked = r.GetUpdate().GetEvent().GetToolCall()
	}
	if asked.GetTool() != "get_weather" || asked.GetAwaits() != "client_tool" || !strings.Contains(content.Text(asked.GetArguments()), "Bern") {
		t.Fatalf("the first client received %v", asked)
	}
	a.must(first.CloseSend()) // and disconnects
	parked := a.awaitStop("client_tool")
	if len(parked.GetPending()) != 1 || parked.GetPending()[0].GetDeadline() == nil || !proto.Equal(parked.GetWakeAt(), parked.GetPending()[0].GetDeadline()) {
		t.Errorf("it stopped with %v", parked)
	}
	a.restart()

	second, err := a.client.Run(a.ctx)
	a.must(err)
	a.must(second.Send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{RunId: a.run, ClientTools: weather()}}}))
	var call string
	for call == "" {
		r, err := second.Recv()
		a.must(err)
		for _, p := range r.GetUpdate().GetResult().GetPending() {
			call = p.GetCallId()
		}
	}
	a.must(second.Send(&harnessv1.RunRequest{RequestId: "weather", Request: &harnessv1.RunRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: call, Result: content.Inline("sunny, 24 degrees")},
	}}))
	for receipt := (*harnessv1.InputReceipt)(nil); receipt == nil; {
		r, err := second.Recv()
		a.must(err)
		if receipt = r.GetUpdate().GetReceipt(); receipt.GetError() != "" {
			t.Fatalf("the answer is refused: %v", receipt)
		}
	}

	a.awaitStop("approval")
	if _, err := os.Stat(filepath.Join(workspace, "out")); err == nil {
		t.Error("the command ran before it was allowed")
	}
	a.m.Harness("approve", a.run, "--server", a.m.Gateway())
	a.awaitStop("budget_exceeded:turns")
	for _, turns := range []uint32{1, 2} {
		_, err := a.client.ResumeRun(a.ctx, &harnessv1.ResumeRunRequest{RunId: a.run, Budgets: &harnessv1.Budgets{Turns: &turns}})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("extended to %d of 2 that are used: %v", turns, err)
		}
	}
	_, err = a.client.ResumeRun(a.ctx, &harnessv1.ResumeRunRequest{RunId: a.run, RequestId: "more", Budgets: &harnessv1.Budgets{Turns: proto.Uint32(9)}})
	a.must(err)
	a.awaitStop("question")
	a.m.Harness("answer", a.run, "green", "--server", a.m.Gateway())
	if r := a.awaitStop("agent_done"); !r.GetAccepted() || content.Text(r.GetSummary()) != "told" {
		t.Errorf("it ended %v", r)
	}
	var last *harnessv1.HarnessResult
	for {
		r, err := second.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		a.must(err)
		if u := r.GetUpdate().GetResult(); u != nil {
			last = u
		}
	}
	if last.GetReason().GetKind() != "agent_done" {
		t.Errorf("the second client received %v", last)
	}
	if out, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(out) != "done\n" {
		t.Errorf("the command did %q, %v", out, err)
	}

	entries := a.m.Ended(runlog.Run{Namespace: "default", ID: a.run}, 0)
	a.must(meshtest.Check(entries))
	told := strings.Join(tale(entries), "\n")
	from := 0
	for _, line := range []string{
		"session.start", "tool.call get_weather waits for client_tool", "step.end awaiting_tool",
		"tool.result get_weather", "input.accepted tool_answer",
		"tool.call run_command waits for approval", "approval.requested run_command", "step.end awaiting_tool",
		"approval.answered run_command", "input.accepted approval", "step.start", "tool.result run_command", "step.end completed",
		"budget.warn turns", "session.pause budget_exceeded:turns", "input.accepted resume", "session.resume resume",
		"tool.call ask_user waits for question", "step.end awaiting_tool", "tool.result ask_user", "input.accepted tool_answer",
		"tool.call work_complete", "session.complete",
	} {
		at := strings.Index(told[from:], line)
		if at < 0 {
			t.Fatalf("%q is not where it should be in\n%s", line, told)
		}
		from += at + len(line)
	}
}

// tale returns a log's events as text.
func tale(entries []runlog.Entry) []string {
	var lines []string
	for _, e := range entries {
		for _, ev := range e.Record.GetEvents() {
			r := ev.ProtoReflect()
			name := strings.Replace(string(r.WhichOneof(r.Descriptor().Oneofs().ByName("event")).Name()), "_", ".", 1)
			detail := ""
			switch x := ev.GetEvent().(type) {
			case *harnessv1.Event_ToolCall:
				if detail = x.ToolCall.GetTool(); x.ToolCall.GetAwaits() != "" {
					detail += " waits for " + x.ToolCall.GetAwaits()
				}
			case *harnessv1.Event_ToolResult:
				detail = x.ToolResult.GetTool()
			case *harnessv1.Event_ToolError:
				detail = x.ToolError.GetTool()
			case *harnessv1.Event_ApprovalRequested:
				detail = x.ApprovalRequested.GetTool()
			case *harnessv1.Event_ApprovalAnswered:
				detail = x.ApprovalAnswered.GetTool()
			case *harnessv1.Event_StepEnd:
				detail = x.StepEnd.GetOutcome()
			case *harnessv1.Event_InputAccepted:
				detail = x.InputAccepted.GetKind()
			case *harnessv1.Event_InputRejected:
				detail = x.InputRejected.GetKind()
			case *harnessv1.Event_BudgetWarn:
				detail = x.BudgetWarn.GetBudget()
			case *harnessv1.Event_SessionPause:
				detail = x.SessionPause.GetReason().GetKind()
			case *harnessv1.Event_SessionResume:
				detail = x.SessionResume.GetCause()
			case *harnessv1.Event_Repair:
				detail = x.Repair.GetTool() + " " + x.Repair.GetReason()
			}
			lines = append(lines, strings.TrimSpace(name+" "+detail))
		}
	}
	return lines
}

// TestSystemDeadlinesPassWithoutAnswers checks that each deadline passes without a waiting gateway, client
// or worker, and that the run continues.
func TestSystemDeadlinesPassWithoutAnswers(t *testing.T) {
	t.Parallel()
	a := newAsker(t, "alone")
	script := a.m.Write("alone.yaml", `turns:
  - {text: "Three things.", calls: [{name: get_weather, arguments: {town: Bern}}, {name: ask_user, arguments: {question: "Which colour?"}}, {name: run_command, arguments: {command: 'echo done >> out'}}]}
  - {when: {last_contains: "in time"}, calls: [{name: work_complete, arguments: {summary: alone}}]}
`)
	workspace := newWorkspace(t)
	_, err := a.client.StartRun(a.ctx, &harnessv1.StartRunRequest{RunId: a.run, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Go on without me."), Workspace: workspace, ClientTools: weather(), Agent: &harnessv1.AgentSpec{Model: "script:" + script},
		Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{
			AnswerTimeout: durationpb.New(1500 * time.Millisecond), ApprovalTimeout: durationpb.New(2500 * time.Millisecond),
		}, Sandbox: asking()},
	}})
	a.must(err)
	a.awaitStop("client_tool")
	a.restart()
	if r := a.awaitStop("agent_done"); !r.GetAccepted() {
		t.Errorf("it ended %v", r)
	}
	if _, err := os.Stat(filepath.Join(workspace, "out")); err == nil {
		t.Error("a command without an approval has run")
	}
	entries := a.m.Ended(runlog.Run{Namespace: "default", ID: a.run}, 0)
	told := strings.Join(tale(entries), "\n")
	for _, line := range []string{"repair get_weather expired", "repair ask_user expired", "repair run_command expired"} {
		if strings.Count(told, line) != 1 {
			t.Errorf("%q is not there once in\n%s", line, told)
		}
	}
}

// TestMessageSteersRunningTurn checks that a user message during a command is in the
// next request to the model.
func TestMessageSteersRunningTurn(t *testing.T) {
	t.Parallel()
	a := newAsker(t, "steered")
	script := a.m.Write("steered.yaml", `turns:
  - {text: "This takes a while.", calls: [{name: run_command, arguments: {command: 'touch begun; while [ ! -e go ]; do sleep 0.01; done'}}]}
  - {when: {last_contains: "turn left"}, calls: [{name: work_complete, arguments: {summary: left}}]}
  - {calls: [{name: work_complete, arguments: {summary: straight on}}]}
`)
	workspace := newWorkspace(t)
	_, err := a.client.StartRun(a.ctx, &harnessv1.StartRunRequest{RunId: a.run, Spec: spec(script, workspace)})
	a.must(err)
	waittest.Eventually(t, "the command runs", func() bool {
		_, err := os.Stat(filepath.Join(workspace, "begun"))
		return err == nil
	})
	_, err = a.client.SendInput(a.ctx, &harnessv1.SendInputRequest{RunId: a.run, Input: &harnessv1.SendInputRequest_UserMessage{
		UserMessage: &harnessv1.UserMessage{Content: content.Inline("Now turn left.")},
	}})
	a.must(err)
	a.must(os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600))
	if r := a.awaitStop("agent_done"); content.Text(r.GetSummary()) != "left" || r.GetTurnCount() != 2 {
		t.Errorf("it ended %v", r)
	}
}

// TestDeletedRunIsGone checks that a run is deleted from the gateway and the bus,
// although every process is killed meanwhile, and that other runs stay.
func TestDeletedRunIsGone(t *testing.T) {
	t.Parallel()
	a := newAsker(t, "deleted")
	script := a.m.Write("short.yaml", "turns:\n  - {text: "+strings.Repeat("long ", 4000)+", calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	for _, id := range []string{a.run, "stays"} {
		_, err := a.client.StartRun(a.ctx, &harnessv1.StartRunRequest{RunId: id, Spec: spec(script, newWorkspace(t))})
		a.must(err)
		a.m.Ended(runlog.Run{Namespace: "default", ID: id}, 0)
	}
	run := runlog.Run{Namespace: "default", ID: a.run}
	entries := a.m.Entries(run)
	_, err := a.client.DeleteRun(a.ctx, &harnessv1.DeleteRunRequest{RunId: a.run})
	a.must(err)
	a.restart()
	gone(a.ctx, t, a.m, entries[0])
	_, err = a.client.GetRun(a.ctx, &harnessv1.GetRunRequest{RunId: a.run})
	if status.Code(err) != codes.FailedPrecondition || fault.ReasonOf(err) != "RUN_EXPIRED" {
		t.Errorf("it is still there: %v", err)
	}
	list, err := a.client.ListRuns(a.ctx, &harnessv1.ListRunsRequest{})
	a.must(err)
	if len(list.GetRuns()) != 1 || list.GetRuns()[0].GetRunId() != "stays" {
		t.Errorf("listed are %v", fmt.Sprint(list.GetRuns()))
	}
	if got := len(a.m.Entries(runlog.Run{Namespace: "default", ID: "stays"})); got < 5 {
		t.Errorf("the other run has %d records left", got)
	}
}

// TestForgedPokes checks that a forged message on the control subject has no effect:
// the worker reads the inbox, which is empty.
func TestForgedPokes(t *testing.T) {
	t.Parallel()
	a := newAsker(t, "forged")
	script := a.m.Write("forged.yaml", `turns:
  - {text: "This takes a while.", calls: [{name: run_command, arguments: {command: 'touch begun; while [ ! -e go ]; do sleep 0.01; done; echo done >> out'}}]}
  - {calls: [{name: work_complete, arguments: {summary: undisturbed}}]}
`)
	workspace := newWorkspace(t)
	_, err := a.client.StartRun(a.ctx, &harnessv1.StartRunRequest{RunId: a.run, Spec: spec(script, workspace)})
	a.must(err)
	waittest.Eventually(t, "the command runs", func() bool {
		_, err := os.Stat(filepath.Join(workspace, "begun"))
		return err == nil
	})
	conn, err := nats.Connect(a.m.Bus.URL())
	a.must(err)
	defer conn.Close()
	for _, subject := range []string{"hm.control.default." + a.run, "hm.control.default.nobody", "hm.control.a.b.c", "hm.control"} {
		for _, data := range [][]byte{nil, []byte("interrupt"), []byte(strings.Repeat("\xff", 4096))} {
			a.must(conn.Publish(subject, data))
		}
	}
	a.must(conn.Flush())
	a.must(os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600))
	if r := a.awaitStop("agent_done"); !r.GetAccepted() {
		t.Errorf("it ended %v", r)
	}
	if out, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(out) != "done\n" {
		t.Errorf("the command did %q, %v", out, err)
	}
	if told := strings.Join(tale(a.m.Ended(runlog.Run{Namespace: "default", ID: a.run}, 0)), "\n"); strings.Contains(told, "interrupted") || strings.Contains(told, "input.") {
		t.Errorf("the log contains\n%s", told)
	}
}
