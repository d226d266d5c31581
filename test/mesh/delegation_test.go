package mesh

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// reader returns an edit that gives a run a sub-agent that changes nothing, with a script.
func reader(script string) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		s.Agent.Agents = append(s.Agent.Agents, &harnessv1.SubAgent{
			Name: "reader", Description: "Looks.", Instructions: "Look.", ReadOnly: proto.Bool(true),
			Model: "script:" + scriptFile(fmt.Sprint("reader", len(script)), script),
		})
	}
}

// looked is what a reader answers.
const looked = `turns:
  - {delay: 300ms, text: "It is so.", calls: [{name: work_complete, arguments: {summary: looked}}]}
`

// texts returns the texts of the messages of a log, results of a tool only if one is named.
func texts(entries []runlog.Entry, tool string) []string {
	var all []string
	for _, e := range entries {
		for _, m := range e.Record.GetAppended() {
			if tool == "" || m.GetToolName() == tool {
				all = append(all, content.Text(m.GetContent()))
			}
		}
	}
	return all
}

// background has a sub-agent work next to it, and waits for its result.
var background = scenario{
	name: "background",
	script: `turns:
  - {calls: [{name: reader, arguments: {prompt: Look., background: true}}]}
  - {calls: [{name: run_command, arguments: {command: 'echo line$(date +%s%N) >> out'}}]}
  - {calls: [{name: agent_wait, arguments: {}}]}
  - {calls: [{name: work_complete, arguments: {summary: both}}]}
`,
	lines: 1,
	edit:  reader(strings.Replace(looked, "300ms", "3s", 1)),
}

// TestSystemBackgroundWork: the call returns while the sub-agent works, and its result comes with
// agent_wait, or as a message.
func TestSystemBackgroundWork(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	d, entries := background.through(t.Context(), t, m, "background")
	sound(t, d, entries)
	if r := texts(entries, "reader"); len(r) != 1 || !strings.Contains(r[0], "works in the background") {
		t.Errorf("the call returns %q", r)
	}
	if r := texts(entries, "agent_wait"); len(r) != 1 || !strings.Contains(r[0], "It is so.") {
		t.Errorf("agent_wait returns %q", r)
	}
	message := background
	message.name, message.edit, message.script = "message", reader(looked), `turns:
  - {calls: [{name: reader, arguments: {prompt: Look., background: true}}]}
  - {calls: [{name: run_command, arguments: {command: 'echo line$(date +%s%N) >> out; sleep 3'}}]}
  - {calls: [{name: read_file, arguments: {path: a.txt}}]}
  - {when: {last_contains: It is so.}, calls: [{name: work_complete, arguments: {summary: both}}]}
  - {calls: [{name: work_complete, arguments: {summary: both}}]}
`
	_, entries = message.through(t.Context(), t, m, "message")
	told := 0
	for _, text := range texts(entries, "") {
		told += strings.Count(text, "A sub-agent that worked in the background has ended.")
	}
	if told != 1 {
		t.Errorf("the model was given the result %d times", told)
	}
}

// TestEndEndsWhatWorksBelow: the end of a run is committed once its sub-agents in the background
// have ended.
func TestEndEndsWhatWorksBelow(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := scenario{
		name: "left",
		script: `turns:
  - {calls: [{name: reader, arguments: {prompt: Look., background: true}}]}
  - {calls: [{name: read_file, arguments: {path: a.txt}}]}
`,
		edit: func(s *harnessv1.RunSpec) {
			reader(`turns:
  - {delay: 10m, text: "Too late.", calls: [{name: work_complete, arguments: {summary: late}}]}
`)(s)
			s.Config.Stop = &harnessv1.StopConfig{MaxTurns: proto.Uint32(2)}
		},
	}
	run := runlog.Run{Namespace: "default", ID: "left"}
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, RequestId: "left", Spec: s.spec(s.file(t), newWorkspace(t))}); err != nil {
		t.Fatal(err)
	}
	entries := m.Ended(run, 0)
	last := entries[len(entries)-1].Record.GetStep().GetSnapshot()
	if last.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || last.GetStopReason().GetKind() != "max_turns" || len(last.GetChildren()) != 1 {
		t.Fatalf("it ended %v", last.GetStopReason())
	}
	child := m.Ended(runlog.Run{Namespace: run.Namespace, ID: last.GetChildren()[0].GetRunId()}, 0)
	if status := child[len(child)-1].Record.GetStep().GetSnapshot().GetStatus(); status != harnessv1.RunStatus_RUN_STATUS_CANCELLED {
		t.Errorf("its sub-agent is %v", status)
	}
	if ended, end := child[len(child)-1].Record.GetCommitTime().AsTime(), entries[len(entries)-1].Record.GetCommitTime().AsTime(); end.Before(ended) {
		t.Errorf("the run ended at %v, before its sub-agent at %v", end, ended)
	}
}

// TestSystemDoneWaitsForTheBackground: an agent that considers itself done while a sub-agent works gets
// another turn with its result.
func TestSystemDoneWaitsForTheBackground(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := scenario{
		name: "early",
		script: `turns:
  - {calls: [{name: reader, arguments: {prompt: Look., background: true}}]}
  - {calls: [{name: work_complete, arguments: {summary: too early}}]}
  - {when: {last_contains: It is so.}, calls: [{name: work_complete, arguments: {summary: with it}}]}
`,
		edit: reader(strings.Replace(looked, "300ms", "2s", 1)),
	}
	d, entries := s.through(t.Context(), t, m, "early")
	sound(t, d, entries)
	last := entries[len(entries)-1].Record.GetStep().GetSnapshot()
	if last.GetTurnCount() != 3 || !last.GetAccepted() || content.Text(last.GetSummary()) != "with it" {
		t.Errorf("after %d turns it ended %v", last.GetTurnCount(), last.GetStopReason())
	}
}

// TestSystemLongAnswersAreSentBackOnce: with the number of words, and then taken.
func TestSystemLongAnswersAreSentBackOnce(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := scenario{
		name: "long",
		script: `turns:
  - {calls: [{name: reader, arguments: {prompt: Look.}}]}
  - {calls: [{name: work_complete, arguments: {summary: read}}]}
`,
		edit: func(s *harnessv1.RunSpec) {
			reader(`turns:
  - {text: "one two three four five", calls: [{name: work_complete, arguments: {summary: looked}}]}
  - {when: {last_contains: "has 5 words, and may have 3"}, text: "one two three four", calls: [{name: work_complete, arguments: {summary: looked}}]}
`)(s)
			s.Agent.Agents[0].MaxAnswerWords = proto.Uint32(3)
		},
	}
	d, entries := s.through(t.Context(), t, m, "long")
	sound(t, d, entries)
	if r := texts(entries, "reader"); len(r) != 1 || !strings.HasSuffix(r[0], "one two three four") {
		t.Errorf("the result is %q", r)
	}
}

// TestGraphsOfTasks: tasks get the results of those before them, by a call and before the first turn.
func TestGraphsOfTasks(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	called := scenario{
		name: "graph",
		script: `turns:
  - calls:
      - name: delegate
        arguments:
          tasks:
            - {id: sum, title: Sum up, agent: reader, prompt: Sum up., after: [east, west]}
            - {id: east, agent: reader, prompt: Look east.}
            - {id: west, agent: reader, prompt: Look west.}
  - {calls: [{name: work_complete, arguments: {summary: both}}]}
`,
		edit: reader(looked),
	}
	d, entries := called.through(t.Context(), t, m, "graph")
	sound(t, d, entries)
	if r := texts(entries, "delegate"); len(r) != 1 || strings.Count(r[0], "It is so.") != 3 || !strings.Contains(r[0], "## Sum up (sum): done") {
		t.Errorf("delegate returns %q", r)
	}
	layers := graphEvents(t, entries, "delegate")
	if layers != "1/2 east, west parallel; 1/2 0; 2/2 Sum up; 2/2 0 last" {
		t.Errorf("layers are %s", layers)
	}
	opening := scenario{
		name: "opening",
		script: `turns:
  - {when: {last_contains: It is so.}, calls: [{name: work_complete, arguments: {summary: both}}]}
`,
		edit: func(s *harnessv1.RunSpec) {
			reader(looked)(s)
			s.Graph = []*harnessv1.GraphTask{{Id: "east", Agent: "reader", Prompt: "Look east."}, {Id: "sum", Agent: "reader", Prompt: "Sum up.", After: []string{"east"}}}
		},
	}
	d, entries = opening.through(t.Context(), t, m, "opening")
	sound(t, d, entries)
	graphEvents(t, entries, "graph")
	children := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren()
	if len(children) != 2 {
		t.Fatalf("%d children", len(children))
	}
	goal := texts(m.Ended(runlog.Run{Namespace: d.run.Namespace, ID: children[1].GetRunId()}, 0), "")
	if !strings.Contains(strings.Join(goal, "\n"), "## Result of east\n\nIt is so.") {
		t.Errorf("the second task was given %q", goal)
	}
}

// graphEvents returns what the events of a log say of layers.
func graphEvents(t *testing.T, entries []runlog.Entry, kind string) string {
	t.Helper()
	var layers []string
	for _, entry := range entries {
		for _, e := range entry.Record.GetEvents() {
			if started := e.GetSubtaskStarted(); started != nil {
				text := fmt.Sprintf("%d/%d %s", started.GetSubtaskIndex(), started.GetTotalSubtasks(), started.GetTitle())
				if started.GetParallel() {
					text += " parallel"
				}
				layers = append(layers, text)
				if started.GetWorkflowType() != kind {
					t.Errorf("the type is %q", started.GetWorkflowType())
				}
			}
			if ended := e.GetSubtaskCompleted(); ended != nil {
				text := fmt.Sprintf("%d/%d %d", ended.GetSubtaskIndex(), ended.GetTotalSubtasks(), ended.GetArtifactsCreated())
				if ended.GetIsLast() {
					text += " last"
				}
				layers = append(layers, text)
			}
		}
	}
	return strings.Join(layers, "; ")
}

// TestSystemContinuedWork: a sub-agent that has ended is given another message, and its next end is
// the answer.
func TestSystemContinuedWork(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	first := `  - {calls: [{name: helper, arguments: {prompt: Append a line.}}]}
  - {calls: [{name: work_complete, arguments: {summary: one line}}]}
`
	s := scenario{name: "continued", script: "turns:\n" + first, lines: 1, edit: helper(`turns:
  - {calls: [{name: run_command, arguments: {command: 'echo first$(date +%s%N) >> out'}}]}
  - {text: "The first is there.", calls: [{name: work_complete, arguments: {summary: appended}}]}
  - {calls: [{name: run_command, arguments: {command: 'echo second$(date +%s%N) >> out'}}]}
  - {text: "The second is there.", calls: [{name: work_complete, arguments: {summary: appended again}}]}
`)}
	d, entries := s.through(t.Context(), t, m, "continued")
	sound(t, d, entries)
	child := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren()[0]
	later := scriptFile("later", "turns:\n"+first+fmt.Sprintf(`  - {calls: [{name: helper, arguments: {prompt: Append another one., continue: %s}}]}
  - {calls: [{name: work_complete, arguments: {summary: two lines}}]}
`, child.GetRunId()))
	send := func(id string, request *harnessv1.SendInputRequest) {
		_, err := waittest.Retry(t.Context(), func(ctx context.Context) (*harnessv1.SendInputResponse, error) {
			request.RunId, request.RequestId = d.run.ID, id
			return d.client.SendInput(ctx, request)
		})
		d.must(err)
	}
	send("model", &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ModelChange{ModelChange: &harnessv1.ModelChange{Model: "script:" + later}}})
	entries = m.Ended(d.run, len(entries))
	send("later", &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline("Another line.")}}})
	again := m.Ended(d.run, len(entries))
	results := texts(again, "helper")
	if len(results) != 2 || !strings.Contains(results[1], "The second is there.") || len(d.lines()) != 2 {
		t.Errorf("the results are %q, and the lines %q", results, d.lines())
	}
	if children := again[len(again)-1].Record.GetStep().GetSnapshot().GetChildren(); len(children) != 1 || children[0].GetReport().GetTurns() != 4 {
		t.Errorf("the children are %v", children)
	}
}

// TestSystemBackgroundSurvivesKills: repair dies at each of its points while a sub-agent works in the
// background. It is started once, and the model has its result once.
func TestSystemBackgroundSurvivesKills(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	random := rand.New(rand.NewPCG(*seed, 19))
	killAt(t, m, random, "repair", background, func(d *driver, entries []runlog.Entry) {
		sound(t, d, entries)
		results := 0
		for _, text := range texts(entries, "") {
			results += strings.Count(text, "It is so.")
		}
		if children := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren(); results != 1 || len(children) != 1 {
			t.Errorf("%s: %d results of %d children", d.run, results, len(children))
		}
	}, "child", "child_started", "report", "reported")
}

// TestSystemWallClockStopsTheTree: at the end of the time of a run its sub-agents halt, and all continue with more.
func TestSystemWallClockStopsTheTree(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	resumed := false
	s := scenario{name: "clock", script: `turns:
  - {calls: [{name: lead, arguments: {prompt: Look.}}]}
  - {text: Done., calls: [{name: work_complete, arguments: {summary: done}}]}
`, edit: func(s *harnessv1.RunSpec) {
		s.Agent.Agents = []*harnessv1.SubAgent{looker("lead", `turns:
  - {calls: [{name: slow, arguments: {prompt: Look.}}]}
  - {text: Led., calls: [{name: work_complete, arguments: {summary: led}}]}
`, looker("slow", `turns:
  - {delay: 8s, text: "It is so.", calls: [{name: work_complete, arguments: {summary: looked}}]}
`))}
		s.Config.Budgets = &harnessv1.Budgets{WallClock: durationpb.New(2 * time.Second)}
	}, drive: func(d *driver, e *harnessv1.Event) {
		if resumed || e.GetSessionPause().GetReason().GetKind() != "budget_exceeded:wall_clock" {
			return
		}
		resumed = true
		_, err := d.client.ResumeRun(d.ctx, &harnessv1.ResumeRunRequest{RunId: d.run.ID, RequestId: "more", Budgets: &harnessv1.Budgets{WallClock: durationpb.New(time.Hour)}})
		d.must(err)
	}}
	d, entries := s.through(t.Context(), t, m, "clock")
	sound(t, d, entries)
	var stopped time.Time
	for _, e := range entries {
		if parked := e.Record.GetStep().GetParked(); parked.GetReason().GetKind() == "budget_exceeded:wall_clock" {
			stopped = e.Record.GetCommitTime().AsTime()
		}
	}
	if got := texts(entries, "lead"); !resumed || len(got) != 1 || !strings.Contains(got[0], "Led.") {
		t.Fatalf("resumed %v, the results are %q", resumed, got)
	}
	run := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren()[0].GetRunId()
	for range 2 { // below the root, and below that
		child := m.Ended(runlog.Run{Namespace: d.run.Namespace, ID: run}, 0)
		halted := false
		for _, e := range child {
			interrupted := e.Record.GetStep().GetParked().GetReason().GetKind() == "interrupted"
			halted = halted || interrupted && !e.Record.GetCommitTime().AsTime().After(stopped)
		}
		if !halted {
			t.Errorf("%s was at work when its root was parked at %v", run, stopped)
		}
		if below := child[len(child)-1].Record.GetStep().GetSnapshot().GetChildren(); len(below) > 0 {
			run = below[0].GetRunId()
		}
	}
}

// shared has a sub-agent whose share of the runs is too small for its calls, so that it gets more of its caller twice.
var shared = scenario{
	name: "shared",
	script: `turns:
  - {calls: [{name: middle, arguments: {prompt: Look.}}]}
  - {text: All looked., calls: [{name: work_complete, arguments: {summary: looked}}]}
`,
	edit: func(s *harnessv1.RunSpec) {
		leaf := looker("leaf", "turns:\n  - {text: It is so., calls: [{name: work_complete, arguments: {summary: looked}}]}\n")
		s.Agent.Agents = []*harnessv1.SubAgent{looker("three", `turns:
  - {calls: [{name: leaf, arguments: {prompt: One.}}, {name: leaf, arguments: {prompt: Two.}}, {name: leaf, arguments: {prompt: Three.}}]}
  - {text: Three looked., calls: [{name: work_complete, arguments: {summary: looked}}]}
`, leaf)}
		s.Agent.Agents[0].Name = "middle"
		s.Config.Budgets = &harnessv1.Budgets{Runs: proto.Uint32(4)}
	},
}

// TestSystemLeasesSurviveKills: repair dies at each of its points while a sub-agent asks for more runs. Each call has one run and one result,
// and all runs count once.
func TestSystemLeasesSurviveKills(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	random := rand.New(rand.NewPCG(*seed, 23))
	killAt(t, m, random, "repair", shared, func(d *driver, entries []runlog.Entry) {
		sound(t, d, entries)
		last := entries[len(entries)-1].Record.GetStep().GetSnapshot()
		if len(last.GetChildren()) != 1 || last.GetSpent().GetRuns() != 4 {
			t.Errorf("%s: %d runs of %d children", d.run, last.GetSpent().GetRuns(), len(last.GetChildren()))
			return
		}
		middle := m.Ended(runlog.Run{Namespace: d.run.Namespace, ID: last.GetChildren()[0].GetRunId()}, 0)
		got := texts(middle, "leaf")
		if children := middle[len(middle)-1].Record.GetStep().GetSnapshot().GetChildren(); len(children) != 3 || len(got) != 3 || strings.Count(strings.Join(got, "\n"), "It is so.") != 3 {
			t.Errorf("%s: %d children, results %q", d.run, len(children), got)
		}
	}, "report", "reported", "order", "ordered")
}

// TestSystemEveryAnswerReachesTheCaller: one of 10 MB too, as far as the text of a model is kept, and that
// there is none.
func TestSystemEveryAnswerReachesTheCaller(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	for name, c := range map[string]struct {
		turn, want string
		size       uint64
	}{
		"10 MB":     {`{text: "first ` + strings.Repeat("0123456789 ", 950_000) + `last", calls: [{name: work_complete, arguments: {summary: looked}}]}`, "first 0123456789", 1<<20 + 1024},
		"no answer": {`{text: "", finish_reason: stop}`, "gave no answer", 0},
	} {
		s := scenario{
			name: "answer",
			script: `turns:
  - {calls: [{name: reader, arguments: {prompt: Look.}}]}
  - {calls: [{name: work_complete, arguments: {summary: read}}]}
`,
			edit: reader("turns:\n  - " + c.turn + "\n" + strings.Repeat("  - {text: \"\"}\n", 8)),
		}
		d, entries := s.through(t.Context(), t, m, strings.ReplaceAll(name, " ", "-"))
		sound(t, d, entries)
		r := texts(entries, "reader")
		if len(r) != 1 || !strings.Contains(r[0], c.want) {
			t.Errorf("%s: the result is %.2000q", name, r)
		}
		for _, e := range entries {
			for _, m := range e.Record.GetAppended() {
				if size := m.GetContent().GetBlob().GetSize(); m.GetToolName() == "reader" && (size > 0) != (c.size > 0) || size > c.size {
					t.Errorf("%s: %d bytes of the result", name, size)
				}
			}
		}
	}
}
