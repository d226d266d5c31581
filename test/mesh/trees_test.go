package mesh

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// looker returns a sub-agent that changes nothing.
func looker(name, script string, agents ...*harnessv1.SubAgent) *harnessv1.SubAgent {
	return &harnessv1.SubAgent{
		Name: name, Description: "Looks.", Instructions: "Look.", ReadOnly: proto.Bool(true), Model: "script:" + scriptFile("trees-"+name, script), Agents: agents,
	}
}

// TestSystemTreesOnOneSlot: a caller that waits for its sub-agents takes no slot of a worker, so 64 runs on 3 levels end on
// one worker with one slot. Then a sub-agent on the second level calls a tool that a client of the root runs, and the
// root takes the answer.
func TestSystemTreesOnOneSlot(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Without: []string{"turn"}})
	m.Start("turn", meshtest.Args("--concurrency", "1"))
	m.AwaitReady("turn")
	const upper, lower = 7, 8 // calls: 1 + 7 + 7 * 8 runs
	calls := func(n int, agent string) string {
		list := strings.Repeat(fmt.Sprintf("{name: %s, arguments: {prompt: Look.}}, ", agent), n)
		return "turns:\n  - {calls: [" + strings.TrimSuffix(list, ", ") + "]}\n  - {text: All looked., calls: [{name: work_complete, arguments: {summary: looked}}]}\n"
	}
	leaf := looker("leaf", "turns:\n  - {text: It is so., calls: [{name: work_complete, arguments: {summary: looked}}]}\n")
	wide := scenario{name: "wide", script: calls(upper, "middle"), edit: func(s *harnessv1.RunSpec) {
		s.Agent.Agents = []*harnessv1.SubAgent{looker("middle", calls(lower, "leaf"), leaf)}
	}}
	_, entries := wide.through(t.Context(), t, m, "wide")
	runs := 1
	for _, c := range entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren() {
		below := m.Ended(runlog.Run{Namespace: "default", ID: c.GetRunId()}, 0)
		s := below[len(below)-1].Record.GetStep().GetSnapshot()
		runs += 1 + len(s.GetChildren())
		if c.GetReport().GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE {
			t.Errorf("%s ended %v", c.GetRunId(), s.GetStopReason())
		}
	}
	if got := texts(entries, "middle"); runs != 1+upper+upper*lower || len(got) != upper || !strings.Contains(got[0], "All looked.") {
		t.Errorf("%d runs, and the root has the results %q", runs, got)
	}
	clientTool(t, m, leaf)
	budgetOfRuns(t, m, leaf)
	sharedRuns(t, m, leaf)
	ownBudget(t, m)
	lateTask(t, m, leaf)
	ownPolicy(t, m)
	inheritedMode(t, m)
}

// budgetOfRuns checks that a run parks once a call gets no run, and that a resume with more continues it.
func budgetOfRuns(t *testing.T, m *meshtest.Mesh, leaf *harnessv1.SubAgent) {
	t.Helper()
	resumed := 0
	s := scenario{name: "runs", script: `turns:
  - {calls: [{name: leaf, arguments: {prompt: Look.}}, {name: leaf, arguments: {prompt: Look.}}]}
  - {calls: [{name: leaf, arguments: {prompt: Look.}}]}
  - {text: All looked., calls: [{name: work_complete, arguments: {summary: looked}}]}
`, edit: func(s *harnessv1.RunSpec) {
		s.Agent.Agents = []*harnessv1.SubAgent{leaf}
		s.Config.Budgets = &harnessv1.Budgets{Runs: proto.Uint32(1)}
	}, drive: func(d *driver, e *harnessv1.Event) {
		if e.GetSessionPause().GetReason().GetKind() != "budget_exceeded:runs" {
			return
		}
		resumed++
		_, err := d.client.ResumeRun(d.ctx, &harnessv1.ResumeRunRequest{RunId: d.run.ID, RequestId: fmt.Sprint("more", resumed), Budgets: &harnessv1.Budgets{Runs: proto.Uint32(2)}})
		d.must(err)
	}}
	_, entries := s.through(t.Context(), t, m, "runs")
	got := texts(entries, "leaf")
	if len(got) != 3 || resumed != 1 || strings.Count(strings.Join(got, "\n"), "It is so.") != 2 || !strings.Contains(strings.Join(got, "\n"), "was not started") {
		t.Errorf("after %d resumes the results are %q", resumed, got)
	}
}

// sharedRuns checks that a sub-agent whose share of the runs is too small for its calls gets more while its callers have it, and
// that only calls for which none is left up to the root get an error.
func sharedRuns(t *testing.T, m *meshtest.Mesh, leaf *harnessv1.SubAgent) {
	t.Helper()
	for budget, want := range map[uint32]int{9: 4, 3: 2} {
		name := fmt.Sprint("shared", budget)
		s := scenario{name: name, script: `turns:
  - {calls: [{name: middle, arguments: {prompt: Look.}}]}
  - {text: All looked., calls: [{name: work_complete, arguments: {summary: looked}}]}
`, edit: func(s *harnessv1.RunSpec) {
			s.Agent.Agents = []*harnessv1.SubAgent{looker("four", `turns:
  - calls:
      - {name: leaf, arguments: {prompt: Look.}}
      - {name: leaf, arguments: {prompt: Look.}}
      - {name: leaf, arguments: {prompt: Look.}}
      - {name: leaf, arguments: {prompt: Look.}}
  - {text: Four looked., calls: [{name: work_complete, arguments: {summary: looked}}]}
`, leaf)}
			s.Agent.Agents[0].Name = "middle"
			s.Config.Budgets = &harnessv1.Budgets{Runs: &budget}
		}}
		_, entries := s.through(t.Context(), t, m, name)
		children := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren()
		got := texts(m.Ended(runlog.Run{Namespace: "default", ID: children[0].GetRunId()}, 0), "leaf")
		looked, refused := 0, 0
		for _, text := range got {
			looked += strings.Count(text, "It is so.")
			refused += strings.Count(text, "was not started")
		}
		if looked != want || looked+refused != 4 {
			t.Errorf("of %d runs, the results are %q", budget, got)
		}
	}
}

// ownBudget checks that a sub-agent ends once it has used up what its definition allows, that its call has a result with what it has
// written, and that its caller continues without help.
func ownBudget(t *testing.T, m *meshtest.Mesh) {
	t.Helper()
	s := scenario{name: "ownbudget", script: `turns:
  - {calls: [{name: spender, arguments: {prompt: Look.}}]}
  - {text: Continued., calls: [{name: work_complete, arguments: {summary: looked}}]}
`, edit: func(s *harnessv1.RunSpec) {
		spender := looker("spender", `turns:
  - {text: Half of it., calls: [{name: list_directory, arguments: {path: .}}], usage: {input_tokens: 900, output_tokens: 200}}
  - {text: All of it., calls: [{name: work_complete, arguments: {summary: all}}]}
`)
		spender.Budgets = &harnessv1.Budgets{Tokens: proto.Uint64(1000)}
		s.Agent.Agents = []*harnessv1.SubAgent{spender}
	}}
	_, entries := s.through(t.Context(), t, m, "ownbudget")
	last := entries[len(entries)-1].Record.GetStep().GetSnapshot()
	got := strings.Join(texts(entries, "spender"), "\n")
	if c := last.GetChildren()[0]; !strings.Contains(got, "Half of it.") || !strings.Contains(got, "budget_exceeded:tokens") || last.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE ||
		c.GetReport().GetStatus() != harnessv1.RunStatus_RUN_STATUS_CANCELLED || c.GetReport().GetUsage().GetInputTokens() != 900 {
		t.Errorf("%v: %v, result %q", last.GetStopReason(), c.GetReport(), got)
	}
}

// lateTask checks that a task of a graph ends when the deadline of its sub-agent has passed, and that the run begins without it.
func lateTask(t *testing.T, m *meshtest.Mesh, leaf *harnessv1.SubAgent) {
	t.Helper()
	s := scenario{name: "latetask", script: `turns:
  - {text: Begun., calls: [{name: work_complete, arguments: {summary: begun}}]}
`, edit: func(s *harnessv1.RunSpec) {
		slow := looker("slow", "turns:\n  - {text: Too late., delay: 1h}\n")
		slow.Deadline = durationpb.New(time.Second)
		s.Agent.Agents = []*harnessv1.SubAgent{leaf, slow}
		s.Graph = []*harnessv1.GraphTask{
			{Id: "late", Agent: "slow", Prompt: "Look."}, {Id: "soon", Agent: "leaf", Prompt: "Look."}, {Id: "next", Agent: "leaf", Prompt: "Look.", After: []string{"late"}},
		}
	}}
	_, entries := s.through(t.Context(), t, m, "latetask")
	got := strings.Join(texts(entries, ""), "\n")
	for _, want := range []string{"(late): failed\n\nThe deadline of the call passed", "(soon): done\n\nIt is so.", "task late before it did not succeed"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if last := entries[len(entries)-1].Record.GetStep().GetSnapshot(); last.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE {
		t.Errorf("it ended %v", last.GetStopReason())
	}
}

// ownPolicy checks that the policy of a definition holds for its runs and for those below them, whose own rules do not weaken it, and that
// the caller's calls are as free as before.
func ownPolicy(t *testing.T, m *meshtest.Mesh) {
	t.Helper()
	const denied = "the policy of guarded denies it"
	list := "{name: list_directory, arguments: {path: .}}, {name: read_file, arguments: {path: a.txt}}"
	s := scenario{name: "ownpolicy", script: "turns:\n  - {calls: [" + list + ", {name: guarded, arguments: {prompt: Look.}}]}\n" +
		"  - {text: All looked., calls: [{name: work_complete, arguments: {summary: looked}}]}\n", edit: func(s *harnessv1.RunSpec) {
		lower := looker("freed", "turns:\n  - {calls: ["+list+"]}\n  - {text: Looked., calls: [{name: work_complete, arguments: {summary: looked}}]}\n")
		lower.Policy = []*harnessv1.ToolRule{{Name: "*", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}}
		middle := looker("guarded", "turns:\n  - {calls: ["+list+", {name: freed, arguments: {prompt: Look.}}]}\n"+
			"  - {text: Both looked., calls: [{name: work_complete, arguments: {summary: looked}}]}\n", lower)
		middle.Policy = []*harnessv1.ToolRule{{Name: "list_*", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY, Reason: denied}}
		s.Agent.Agents = []*harnessv1.SubAgent{middle}
	}}
	_, entries := s.through(t.Context(), t, m, "ownpolicy")
	for level, refused := range []bool{false, true, true} {
		if listed := strings.Join(texts(entries, "list_directory"), "\n"); strings.Contains(listed, denied) != refused || listed == "" {
			t.Errorf("level %d: list_directory returned %q", level, listed)
		}
		if read := strings.Join(texts(entries, "read_file"), "\n"); !strings.Contains(read, "a") || strings.Contains(read, "not allowed") {
			t.Errorf("level %d: read_file returned %q", level, read)
		}
		if children := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren(); len(children) == 1 {
			entries = m.Ended(runlog.Run{Namespace: "default", ID: children[0].GetRunId()}, 0)
		} else if level < 2 {
			t.Fatalf("level %d has %d children", level, len(children))
		}
	}
}

// inheritedMode checks that a sub-agent enters plan mode with its caller, and that its result names what it has changed.
func inheritedMode(t *testing.T, m *meshtest.Mesh) {
	t.Helper()
	client := m.Client()
	spec := spec(scriptFile("planned", `turns:
  - {calls: [{name: helper, arguments: {prompt: Write.}}]}
  - {text: Written., calls: [{name: work_complete, arguments: {summary: written}}]}
`), newWorkspace(t))
	helper(`turns:
  - {calls: [{name: write_file, arguments: {path: first.txt, content: x}}]}
  - {calls: [{name: ask_user, arguments: {question: Which file}}]}
  - {calls: [{name: write_file, arguments: {path: second.txt, content: x}}]}
  - {text: Planned., calls: [{name: work_complete, arguments: {summary: planned}}]}
`)(spec)
	if _, err := client.StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: "planned", RequestId: "planned", Spec: spec}); err != nil {
		t.Fatal(err)
	}
	send := func(request *harnessv1.SendInputRequest) {
		t.Helper()
		request.RunId = "planned"
		if _, err := client.SendInput(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := client.WatchRun(t.Context(), &harnessv1.WatchRunRequest{RunId: "planned"})
	if err != nil {
		t.Fatal(err)
	}
	call, denied := "", false
	for ended := false; !ended; {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		e := r.GetUpdate().GetEvent()
		switch asked := e.GetToolCall(); {
		case asked.GetAwaits() == "question":
			call = asked.GetCallId()
			send(&harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "plan"}}})
		case e.GetModeChanged().GetTo() == "plan" && e.GetAgent() == "helper":
			send(&harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: call, Result: content.Inline("yes")}}})
		}
		denied = denied || e.GetToolDenied() != nil && e.GetAgent() == "helper"
		ended = e.GetSessionComplete() != nil && e.GetRunId() == ""
	}
	got := texts(m.Ended(runlog.Run{Namespace: "default", ID: "planned"}, 0), "helper")
	if !denied || len(got) != 1 || !strings.Contains(got[0], "1 file changed: first.txt;") {
		t.Errorf("denied: %v, and the result is %q", denied, got)
	}
}

// clientTool checks that a sub-agent has a client's tool that its definition lists, and its sub-agent one that both list.
func clientTool(t *testing.T, m *meshtest.Mesh, unlisted *harnessv1.SubAgent) {
	t.Helper()
	asks := "turns:\n  - {calls: [{name: weather, arguments: {}}]}\n  - {when: {last_contains: sunny}, text: It is sunny., calls: [{name: work_complete, arguments: {summary: sunny}}]}\n"
	through := "turns:\n  - {calls: [{name: asker, arguments: {prompt: Ask.}}]}\n  - {text: Asked., calls: [{name: work_complete, arguments: {summary: asked}}]}\n"
	asker := looker("asker", asks)
	asker.Tools = []string{"weather"}
	outer := looker("outer", through, asker)
	outer.Tools = []string{"weather", "asker"}
	spec := spec(scriptFile("weather", strings.ReplaceAll(through, "asker", "outer")), newWorkspace(t))
	spec.Agent.Agents = []*harnessv1.SubAgent{outer, unlisted}
	spec.ClientTools = []*harnessv1.ToolSpec{{
		Name: "weather", Description: "The weather.", ParametersSchema: `{"type":"object"}`, Annotations: &harnessv1.ToolAnnotations{Reads: true},
	}}
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: "weather", RequestId: "weather", Spec: spec}); err != nil {
		t.Fatal(err)
	}
	stream, err := m.Client().WatchRun(t.Context(), &harnessv1.WatchRunRequest{RunId: "weather"})
	if err != nil {
		t.Fatal(err)
	}
	for asked := false; !asked; {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		e := r.GetUpdate().GetEvent()
		if call := e.GetToolCall(); call.GetTool() == "weather" {
			if asked = true; e.GetRunId() == "" || e.GetAgent() != "asker" || call.GetAwaits() != "client_tool" {
				t.Errorf("the call is announced as %v", e)
			}
			_, err := m.Client().SendInput(t.Context(), &harnessv1.SendInputRequest{RunId: "weather", RequestId: "sun", Input: &harnessv1.SendInputRequest_ToolAnswer{
				ToolAnswer: &harnessv1.ToolAnswer{CallId: call.GetCallId(), Result: content.Inline("sunny")},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	entries := m.Ended(runlog.Run{Namespace: "default", ID: "weather"}, 0)
	if got := texts(entries, "outer"); len(got) != 1 || !strings.Contains(got[0], "Asked.") || !strings.Contains(got[0], "DONE") {
		t.Errorf("the result is %q", got)
	}
}
