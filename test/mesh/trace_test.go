package mesh

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/oteltest"
)

// TestSystemTraceIsConnected checks that the processes of a mesh send one connected trace: a
// client with its own trace starts a run, which uses tools, parks for an approval, is
// woken and ends.
func TestSystemTraceIsConnected(t *testing.T) {
	t.Parallel()
	const traceID, caller, approver = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "00f067aa0ba902b8"
	collector := oteltest.Start(t)
	m := meshtest.Start(t, bin, meshtest.Config{Env: collector.Env()})
	a := &asker{T: t, ctx: t.Context(), m: m, client: m.Client(), run: "traced"}
	from := func(span string) { // the client's span
		a.ctx = metadata.AppendToOutgoingContext(t.Context(), runtrace.Header, "00-"+traceID+"-"+span+"-01")
	}
	workspace := newWorkspace(t)
	script := m.Write("trace.yaml", `turns:
  - {text: "Look.", calls: [{name: read_file, arguments: {path: a-secret-name.txt}}, {name: run_command, arguments: {command: 'echo the-secret >> out'}}], usage: {input_tokens: 900, output_tokens: 20}}
  - {calls: [{name: work_complete, arguments: {summary: the-secret is told}}]}
`)
	from(caller)
	_, err := a.client.StartRun(a.ctx, &harnessv1.StartRunRequest{RunId: a.run, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Tell the-secret."), Workspace: workspace,
		Agent:  &harnessv1.AgentSpec{Name: "teller", Model: "script:" + script},
		Config: &harnessv1.LoopConfig{Sandbox: asking()},
	}})
	a.must(err)
	pending := a.awaitStop("approval").GetPending()
	from(approver)
	_, err = a.client.SendInput(a.ctx, &harnessv1.SendInputRequest{RunId: a.run, Input: &harnessv1.SendInputRequest_Approval{
		Approval: &harnessv1.Approval{CallId: pending[0].GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
	}})
	a.must(err)
	a.awaitStop("agent_done")
	run, err := a.client.GetRun(a.ctx, &harnessv1.GetRunRequest{RunId: a.run})
	a.must(err)
	if run.GetRun().GetTraceId() != traceID || !slices.Equal(run.GetRun().GetTraceIds(), []string{traceID}) {
		t.Errorf("the run is in trace %q, %v, its client in %s", run.GetRun().GetTraceId(), run.GetRun().GetTraceIds(), traceID)
	}
	shown := m.Harness("show", a.run, "--server", m.Gateway())
	if !strings.Contains(shown, "trace       "+traceID) {
		t.Errorf("harness show names no trace:\n%s", shown)
	}
	for _, role := range meshtest.Roles {
		m.Process(role).Terminate() // sends the rest
	}

	spans := collector.Spans()
	t.Logf("\n%s", oteltest.Tree(spans))
	for _, line := range oteltest.Loose(spans, traceID+"/"+caller, traceID+"/"+approver) {
		t.Error(line)
	}
	services, names := map[string]bool{}, map[string][]oteltest.Span{}
	for _, s := range spans {
		services[s.Service] = true
		names[s.Name] = append(names[s.Name], s)
		if s.Trace != traceID {
			t.Errorf("%s of %s is in trace %s", s.Name, s.Service, s.Trace)
		}
		if text, err := json.Marshal(s.Attributes); err != nil || strings.Contains(string(text), "secret") {
			t.Errorf("%s contains texts: %s (%v)", s.Name, text, err)
		}
		if s.End.Before(s.Start) {
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
	want := []string{"harness-compaction", "harness-gateway", "harness-repair", "harness-stopdecision", "harness-toolhost", "harness-turn"}
	if got := slices.Sorted(maps.Keys(services)); !slices.Equal(got, want) {
		t.Errorf("spans of %v, want %v", got, want)
	}
	for name, count := range map[string]int{
		"start_run": 1, "invoke_agent teller": 2, "turn 1": 2, "turn 2": 1, "chat trace.yaml": 2,
		"execute_tool read_file": 1, "execute_tool run_command": 1, "harness.v1.ToolHostService/ExecuteTool": 4,
		"harness.v1.ToolHostService/DescribeServers": 0, // the agent has no server
	} {
		if len(names[name]) != count {
			t.Errorf("%d spans %s, want %d", len(names[name]), name, count)
		}
	}
	if t.Failed() {
		return
	}
	has := func(s oteltest.Span, want map[string]any) {
		t.Helper()
		for key, value := range want {
			if fmt.Sprint(s.Attributes[key]) != fmt.Sprint(value) {
				t.Errorf("%s: %s is %v, want %v", s.Name, key, s.Attributes[key], value)
			}
		}
	}
	has(names["chat trace.yaml"][0], map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "script", "gen_ai.request.model": "trace.yaml", "gen_ai.conversation.id": a.run,
		"gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 20, "gen_ai.response.finish_reasons": []string{"tool_calls"}, "harness.turn": 1,
	})
	has(names["invoke_agent teller"][0], map[string]any{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "teller", "harness.run.id": a.run, "harness.status": "parked", "harness.reason": "approval",
	})
	has(names["invoke_agent teller"][1], map[string]any{"harness.status": "done", "harness.reason": "agent_done"})
	has(names["execute_tool read_file"][0], map[string]any{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_file", "gen_ai.tool.type": "function", "error.type": "tool_error",
	})
	second := names["invoke_agent teller"][1]
	if second.Parent != names["invoke_agent teller"][0].ID || len(second.Links) != 1 || second.Links[0].ID != second.Parent {
		t.Errorf("the second stretch has the parent %s and the links %v", second.Parent, second.Links)
	}
	heard := false
	for _, s := range names["repair"] {
		for _, l := range s.Links {
			heard = heard || l.Attributes["harness.cause"] == "input"
		}
	}
	if !heard {
		t.Error("nothing leads from the approval to the repair that took it in")
	}
}

// TestSystemTakeoverIsLinked kills a worker during a turn. The next attempt must be marked
// and linked to the one before, whose span died with its process. Nothing else may be
// disconnected.
func TestSystemTakeoverIsLinked(t *testing.T) {
	t.Parallel()
	collector := oteltest.Start(t)
	// A longer takeover time than usual: on a busy machine a second one would follow the first.
	m := meshtest.Start(t, bin, meshtest.Config{Env: collector.Env(), Takeover: 3 * time.Second})
	m.Process("turn").Kill()
	first := m.Start("turn", meshtest.Arm("turn.responded=kill"))
	m.AwaitReady("turn")
	a := &asker{T: t, ctx: t.Context(), m: m, client: m.Client(), run: "taken"}
	script := m.Write("taken.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: told}}]}\n")
	_, err := a.client.StartRun(a.ctx, &harnessv1.StartRunRequest{RunId: a.run, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Tell."), Workspace: newWorkspace(t), Agent: &harnessv1.AgentSpec{Model: "script:" + script},
	}})
	a.must(err)
	first.Wait()
	m.Start("turn")
	a.awaitStop("agent_done")
	for _, role := range meshtest.Roles {
		m.Process(role).Terminate()
	}
	spans := collector.Spans()
	t.Logf("\n%s", oteltest.Tree(spans))
	var lost string // the span of the attempt that died
	for _, e := range m.Entries(runlog.Run{Namespace: "default", ID: a.run}) {
		if e.Record.GetJournal().GetTurnStarted().GetAttempt() == 1 {
			ref, ok := runtrace.Parse(e.Header.Traceparent)
			if !ok {
				t.Fatalf("the turn was claimed by span %q", e.Header.Traceparent)
			}
			lost = ref.Trace.String() + "/" + ref.Span.String()
		}
	}
	for _, line := range oteltest.Loose(spans, lost) {
		t.Error(line)
	}
	found := false
	for _, s := range spans {
		if s.Name != "turn" {
			continue
		}
		for _, l := range s.Links {
			if l.Attributes["harness.cause"] == "taken over" {
				found = l.Trace+"/"+l.ID == lost && s.Attributes["harness.attempt"] == int64(2) && s.Attributes["harness.redelivered"] == true
			}
		}
	}
	if !found {
		t.Errorf("no attempt leads to %s", lost)
	}
}
