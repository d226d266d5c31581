package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestGraphOfARun: the tasks of a graph file are those of the spec, and each mistake is reported at its place in the file.
func TestGraphOfARun(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	dir := t.TempDir()
	agent := harnesstest.Write(t, filepath.Join(dir, "a.yaml"), "agents: [explore, {name: mine, description: a, instructions: b}]\n")
	graph := harnesstest.Write(t, filepath.Join(dir, "graph.yaml"), "tasks:\n  - {id: find, title: Find, agent: explore, prompt: Look.}\n  - {id: do, agent: mine, prompt: Go., after: [find]}\n")
	json := harnesstest.Write(t, filepath.Join(dir, "graph.json"), `{"tasks": [{"id": "find", "agent": "explore", "prompt": "Look."}]}`)
	run := func(args ...string) harnesstest.Outcome {
		return harnesstest.Call(t, nil, "", append([]string{"run", "--server", f.Address}, args...)...)
	}
	for i, test := range []struct {
		file  string
		tasks int
	}{{graph, 2}, {json, 1}} {
		if got := run("--agent", agent, "--graph", test.file, "go"); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		tasks := f.Starts[i].GetSpec().GetGraph()
		if len(tasks) != test.tasks || tasks[0].GetId() != "find" || tasks[0].GetAgent() != "explore" || tasks[0].GetPrompt() != "Look." {
			t.Errorf("%s: %v", test.file, tasks)
		}
		if test.tasks == 2 && (tasks[0].GetTitle() != "Find" || strings.Join(tasks[1].GetAfter(), " ") != "find") {
			t.Errorf("%s: %v", test.file, tasks)
		}
	}
	for text, want := range map[string]string{
		"tasks:\n  - {id: a, agent: nobody, prompt: b}":                                                            `:2:20: tasks[0].agent: there is no sub-agent "nobody"; there are explore, mine`,
		"tasks:\n  - {id: a, agent: mine, prompt: b}\n  - {id: a, agent: mine, prompt: b}":                         `:3:10: tasks[1].id: "a" is used twice; give each task its own`,
		"tasks:\n  - {id: a, agent: mine, prompt: b, after: [c]}":                                                  `:2:44: tasks[0].after: there is no task "c"`,
		"tasks:\n  - {id: a, agent: mine, prompt: b, after: [b]}\n  - {id: b, agent: mine, prompt: b, after: [a]}": `:2:44: tasks[0].after: "a" waits for itself, through the tasks before it; leave one of them out`,
		"tasks:\n  - {id: a, agent: mine}":                                                                         `:2:5: tasks[0].prompt: must be set`,
		"tasks:\n  - {id: a, agent: mine, promt: b}":                                                               `:2:26: unknown field "promt" in tasks[0]; did you mean prompt?`,
		"taks: []":       `:1:1: unknown field "taks": expected tasks`,
		"- {id: a}":      `:1:1: expected a mapping`,
		"tasks: []":      `:1:1: tasks: expected at least one task`,
		"tasks: [":       `: not YAML: `,
		"tasks: {id: a}": `:1:8: tasks: expected a list`,
	} {
		bad := harnesstest.Write(t, filepath.Join(dir, "bad.yaml"), text+"\n")
		if got := run("--agent", agent, "--graph", bad, "go"); got.Code != 1 || strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, "harness: --graph: "+bad+":") || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--graph", graph, "go"}, `graph.yaml:2:36: tasks[0].agent: there is no sub-agent "explore": the agent has none; add it to its agents`},
		{[]string{"--graph", filepath.Join(dir, "none.yaml"), "go"}, "none.yaml does not exist: correct the path"},
		{[]string{"--continue", "r", "--graph", graph, "go"}, "--continue and --graph"},
	} {
		if got := run(test.args...); got.Code != 1 || !strings.Contains(got.Err, test.want) {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
	if got := harnesstest.Call(t, nil, "", "agent", "check", graph, json); got.Code != 0 || strings.Count(got.Out, "OK (graph)") != 2 {
		t.Errorf("%+v", got)
	}
}
