package gym

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// someTasks is the part of the tasks that is played without -table: one of six.
const someTasks = 6

// listedTools is the number of tools that a run has in whose requests they are listed.
const listedTools = 40

// shownTool is a tool as the model reads it: in the list of a request, or in what find_tools returns.
type shownTool struct{ name, schema string }

// chooser is a model that makes one call: of the tool whose name fits its task best, among those that
// it is shown. If it is shown no tool of a server, it searches with the words of its task.
func chooser(task string) model {
	return func(c *chat) modeltest.Reply {
		if c.made("call_tool") > 0 || slices.ContainsFunc(c.calls, func(made modeltest.Call) bool { return strings.HasPrefix(made.Name, "mcp__") }) {
			return done("Done.")
		}
		var shown []shownTool
		for _, t := range c.req.Tools {
			if strings.HasPrefix(t.Name, "mcp__") {
				shown = append(shown, shownTool{t.Name, string(t.Parameters)})
			}
		}
		if listed := choose(task, shown); listed != nil {
			return calls(modeltest.Call{Name: listed.name, Arguments: example(listed.schema)})
		}
		if c.made("find_tools") == 0 {
			return calls(call("find_tools", args{"query": task}))
		}
		if found := choose(task, foundTools(c.result())); found != nil {
			return calls(call("call_tool", args{"name": found.name, "arguments": json.RawMessage(example(found.schema))}))
		}
		return done("There is no such tool.")
	}
}

var foundTool = regexp.MustCompile(`(?m)^(mcp__[\w-]+)\n(?:.*\n)*?schema: (.*)$`)

// foundTools returns the tools in a result of find_tools.
func foundTools(result string) (shown []shownTool) {
	for _, m := range foundTool.FindAllStringSubmatch(result, -1) {
		shown = append(shown, shownTool{m[1], m[2]})
	}
	return shown
}

// choose returns the tool whose name covers the most words of the task and has the fewest others; nil if
// none has one.
func choose(task string, shown []shownTool) *shownTool {
	var best *shownTool
	most := 0
	for _, t := range shown {
		score := 0
		names := wordsOf(strings.TrimPrefix(t.name, "mcp__"))
		for _, w := range wordsOf(task) {
			if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, w) || strings.HasPrefix(w, n) }) {
				score += 4
			}
		}
		for _, n := range names {
			if !slices.ContainsFunc(wordsOf(task), func(w string) bool { return strings.Contains(n, w) || strings.HasPrefix(w, n) }) {
				score--
			}
		}
		if score > most {
			best, most = &t, score
		}
	}
	return best
}

// wordsOf returns the words of a text with at least three letters, in lower case.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(words, func(w string) bool { return len(w) < 3 })
}

// example returns arguments that fit a schema.
func example(text string) string {
	var schema map[string]any
	if json.Unmarshal([]byte(text), &schema) != nil {
		return "{}"
	}
	data, err := json.Marshal(exampleOf(schema))
	if err != nil {
		return "{}"
	}
	return string(data)
}

func exampleOf(schema map[string]any) any {
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	if value, ok := schema["const"]; ok {
		return value
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		if all, ok := schema[word].([]any); ok && len(all) > 0 && schema["type"] == nil {
			first, _ := all[0].(map[string]any)
			return exampleOf(first)
		}
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok && len(kinds) > 0 {
		kind, _ = kinds[0].(string)
	}
	switch kind {
	case "string":
		least, _ := schema["minLength"].(float64)
		return map[any]string{"uri": "https://example.com/", "uuid": "00000000-0000-4000-8000-000000000000", "date-time": "2026-11-27T00:00:00Z"}[schema["format"]] +
			strings.Repeat("x", int(least))
	case "number", "integer":
		least, _ := schema["minimum"].(float64)
		return max(1, least)
	case "boolean":
		return true
	case "array":
		items := []any{}
		least, _ := schema["minItems"].(float64)
		for range int(least) {
			item, _ := schema["items"].(map[string]any)
			items = append(items, exampleOf(item))
		}
		return items
	}
	value := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		name, _ := name.(string)
		of, _ := properties[name].(map[string]any)
		value[name] = exampleOf(of)
	}
	return value
}

// withRealServers starts the servers of real tools, and gives the run those that it may have.
func withRealServers(t *testing.T, tools []servertest.RealTool) func(*harnessv1.RunSpec) {
	t.Helper()
	data, err := filepath.Abs(servertest.RealData("../../pkg/tool/dialect"))
	if err != nil {
		t.Fatal(err)
	}
	return func(s *harnessv1.RunSpec) {
		s.Config.Sandbox = &harnessv1.SandboxConfig{Read: []string{data}}
		for _, r := range tools {
			i := slices.IndexFunc(s.Agent.Mcp, func(have *harnessv1.McpServer) bool { return have.GetName() == r.Server })
			if i < 0 {
				server := servertest.Server(r.Server, servertest.Plain+"=1", servertest.Real+"="+data, servertest.RealServer+"="+r.Server)
				server.Shared = true
				i, s.Agent.Mcp = len(s.Agent.Mcp), append(s.Agent.Mcp, server)
			}
			s.Agent.Mcp[i].Tools = append(s.Agent.Mcp[i].Tools, r.Name)
		}
	}
}

// choice is what came of a task.
type choice struct {
	turns, tokens int
	solved        bool
}

// playChooser plays a task in the harness with some tools.
func playChooser(t *testing.T, id string, task servertest.RealTask, tools []servertest.RealTool, listed bool) choice {
	t.Helper()
	w := newWorld(t, nil)
	var seen *chat
	served := models.add(id, func(c *chat) modeltest.Reply { seen = c; return chooser(task.Task)(c) }, w.dir)
	run := meshed(t, &scenario{goal: task.Task}, id, w.dir, edits(withRealServers(t, tools)))
	if seen.hasTool(task.Tool) != listed || seen.hasTool("find_tools") == listed {
		t.Errorf("%q with %d tools: the tool is listed: %t", task.Task, len(tools), seen.hasTool(task.Tool))
	}
	turns, tokens := served.sent()
	return choice{turns: turns, tokens: tokens, solved: run.verdict() == accepted && slices.ContainsFunc(run.events, func(e *harnessv1.Event) bool {
		return e.GetToolResult().GetTool() == task.Tool
	})}
}

// neighbours returns 40 tools with the one that a task means: those before and after it in the file.
func neighbours(all []servertest.RealTool, full string) []servertest.RealTool {
	i := slices.IndexFunc(all, func(r servertest.RealTool) bool { return r.FullName() == full })
	first := min(max(0, i-listedTools/2), len(all)-listedTools)
	return all[first : first+listedTools]
}

// TestSystemToolsOfServers: a model that chooses by words solves as many tasks if it has to find one of 524
// tools of real servers as it does if 40 of them are listed. It plays all tasks with -table.
func TestSystemToolsOfServers(t *testing.T) {
	program.Rely(t)
	folder := servertest.RealData("../../pkg/tool/dialect")
	all, err := servertest.RealTools(folder)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := servertest.RealTasks(folder)
	if err != nil {
		t.Fatal(err)
	}
	if *tableFile == "" {
		for i := range len(tasks) / someTasks {
			tasks[i] = tasks[i*someTasks]
		}
		tasks = tasks[:len(tasks)/someTasks]
	}
	few, many := make([]choice, len(tasks)), make([]choice, len(tasks))
	t.Run("tasks", func(t *testing.T) {
		for i, task := range tasks {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				few[i] = playChooser(t, fmt.Sprintf("few-%d", i), task, neighbours(all, task.Tool), true)
				many[i] = playChooser(t, fmt.Sprintf("many-%d", i), task, all, false)
				if few[i].solved && !many[i].solved {
					t.Logf("%q is solved with 40 tools only", task.Task)
				}
			})
		}
	})
	if t.Failed() || slices.ContainsFunc(many, func(c choice) bool { return c.turns == 0 }) {
		return // some failed, or were left out
	}
	lines := []string{
		choiceLine(fmt.Sprintf("%d, listed", listedTools), few), choiceLine(fmt.Sprintf("%d of %d servers, found by `find_tools`", len(all), serversOf(all)), many),
	}
	if solvedOf(many) < solvedOf(few) {
		t.Errorf("fewer tasks are solved: %q", lines)
	}
	if *tableFile == "" {
		return
	}
	before, _, after := serverTable.find(t, *tableFile)
	whole := line(serverTable.columns) + strings.Repeat("|---", len(serverTable.columns)) + "|\n" + strings.Join(lines, "")
	if err := os.WriteFile(*tableFile, []byte(before+serverTable.marker()+whole+serverTable.end()+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

var serverTable = table{name: "servers", columns: []string{"tools", "tasks solved", "turns of a task", tokenColumn}}

func choiceLine(what string, all []choice) string {
	turns, tokens := 0, 0
	for _, c := range all {
		turns += c.turns
		tokens += c.tokens
	}
	return line([]string{what, fmt.Sprintf("%d of %d", solvedOf(all), len(all)), fmt.Sprintf("%.1f", float64(turns)/float64(len(all))), rounded(tokens / len(all))})
}

func solvedOf(all []choice) (n int) {
	for _, c := range all {
		if c.solved {
			n++
		}
	}
	return n
}

func serversOf(all []servertest.RealTool) int {
	names := map[string]bool{}
	for _, r := range all {
		names[r.Server] = true
	}
	return len(names)
}
