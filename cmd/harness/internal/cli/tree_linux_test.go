//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// newTree writes the agent of a tree and returns its place. Its root calls "upper", which asks a
// question and calls "lower", whose command asks for approval.
func newTree(t *testing.T) (p place, agent string) {
	t.Helper()
	p = newPlace(t, `turns:
  - {text: I delegate., calls: [{name: upper, arguments: {prompt: Work on the upper part.}}]}
  - {text: All is done., calls: [{name: work_complete, arguments: {summary: done}}]}
`)
	return p, p.tree(t, map[string]string{
		"upper": `turns:
  - {text: First a question., calls: [{name: ask_user, arguments: {question: "Which file?"}}]}
  - {text: Then the work., calls: [{name: lower, arguments: {prompt: Append a line.}}]}
  - {text: Done above., calls: [{name: work_complete, arguments: {summary: upper}}]}
`, "lower": asks}, "upper/lower")
}

// tree writes an agent file with sub-agents by their scripts. Each path has names from the root
// down.
func (p place) tree(t *testing.T, scripts map[string]string, paths ...string) string {
	t.Helper()
	dir := filepath.Dir(p.script)
	var text strings.Builder
	fmt.Fprintf(&text, "model: script:%s\n%stools: [{name: run_command, policy: ask}]\n", p.script, asking)
	for _, path := range paths {
		indent := ""
		for name := range strings.SplitSeq(path, "/") {
			file := filepath.Join(dir, name+".yaml")
			if err := os.WriteFile(file, []byte(scripts[name]), 0o644); err != nil {
				t.Fatal(err)
			}
			if indent != "" || !strings.Contains(text.String(), "\nagents:") {
				fmt.Fprintf(&text, "%sagents:\n", indent)
			}
			fmt.Fprintf(&text, "%s  - name: %s\n%s    description: Helps.\n%s    instructions: Help.\n%s    read_only: %v\n%s    model: script:%s\n",
				indent, name, indent, indent, indent, !strings.Contains(scripts[name], "run_command") && !strings.Contains(path, "/"), indent, file)
			indent += "    "
		}
	}
	agent := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(agent, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return agent
}

func (p place) runTree(agent string, args ...string) []string {
	return append([]string{"run", "--data", p.data, "--workspace", p.workspace, "--agent", agent}, args...)
}

// durations differ from run to run, as do temporary folders.
var durations = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[0-9.]+m?s\b`) })

// TestATreeOnATerminal: the runs of sub-agents are nested in the run that called them, and their
// questions and approvals name them, and the prompt takes the answers.
func TestATreeOnATerminal(t *testing.T) {
	for _, columns := range []string{"80", "140"} {
		for _, flags := range [][]string{nil, {"--tree=false"}} {
			p, agent := newTree(t)
			args := append(p.runTree(agent, "--run-id", "r", "go"), flags...)
			cmd := capable(program(t, args...))
			cmd.Env = append(cmd.Env, "COLUMNS="+columns)
			screen, keyboard := onTerminal(t, cmd)
			screen.expect(t, "Your answer (Enter to skip): ", 1)
			_, _ = keyboard.Write([]byte("out\n"))
			screen.expect(t, "[n] no: ", 1)
			_, _ = keyboard.Write([]byte("y\n"))
			if code := exitCode(t, cmd); code != 0 {
				t.Errorf("exit code %d", code)
			}
			screen.expect(t, "agent_done", 1)
			width := 80
			if columns == "140" {
				width = 140
			}
			got := seenAt(t, screen, width)
			if _, err := os.Stat(filepath.Join(p.workspace, "hello.txt")); err != nil {
				t.Error(err)
			}
			if flags != nil {
				if strings.Contains(got, "upper │") || !strings.Contains(got, "The sub-agent upper (run a-") || !strings.Contains(got, "run_command of sub-agent lower (run a-") {
					t.Errorf("without the tree:\n%s", got)
				}
				continue
			}
			lines := slices.DeleteFunc(strings.Split(got, "\n"), func(line string) bool { // differs by machine
				return strings.Contains(line, filepath.Dir(p.data)) || strings.Contains(line, "AS_PROGRAM")
			})
			golden(t, "tree-"+columns+".txt", durations().ReplaceAllString(strings.Join(lines, "\n")+"\n", "TIME"))
		}
	}
}

// linesOf returns the events of jsonl by the name of their sub-agent, empty for those of the run.
func linesOf(t *testing.T, out string) map[string]int {
	t.Helper()
	lines := map[string]int{}
	for line := range strings.Lines(out) {
		var e struct {
			Agent  string
			Offset any
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines[e.Agent]++
		if offset, ok := e.Offset.(string); ok && offset != "" {
			lines["offset"]++
		}
	}
	return lines
}

// TestAnswersBelowTheRoot: what waits below is listed with its run and answered by the root's name.
func TestAnswersBelowTheRoot(t *testing.T) {
	p, agent := newTree(t)
	got := call(t, nil, "", p.runTree(agent, "--run-id", "r", "--output", "jsonl", "go")...)
	if got.code != 4 || !strings.Contains(got.err, "of run a-") {
		t.Fatalf("%+v", got)
	}
	if lines := linesOf(t, got.out); lines["upper"] == 0 || lines[""] == 0 || lines["offset"] == 0 {
		t.Errorf("jsonl has %v", lines)
	}
	got = call(t, nil, "", "watch", "--data", p.data, "--output", "jsonl", "--tree=false", "r")
	if lines := linesOf(t, got.out); len(lines) != 1 {
		t.Errorf("jsonl of the run alone has %v", lines)
	}
	for _, verb := range [][]string{{"show", "r"}, {"list"}, {"list", "--all"}} {
		args := append(verb, "--data", p.data)
		if got := call(t, nil, "", args...); !strings.Contains(got.out, " asks: Which file?") || !strings.Contains(got.out, " call_1_0 ANSWER") || strings.Count(got.out, "Which file?") != 1 {
			t.Errorf("%v: %+v", verb, got)
		}
	}
	if got := call(t, nil, "", "approve", "--data", p.data, "--yes", "r"); got.code != 1 || !strings.Contains(got.err, "harness answer r call_1_0 ANSWER") {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "answer", "--data", p.data, "--resume", "r", "out"); got.code != 4 || !strings.Contains(got.err, "upper │   ✓ ask_user  out") || !strings.Contains(got.err, "waits for approval") {
		t.Fatalf("%+v", got)
	}
	if got := call(t, nil, "", "approve", "--data", p.data, "--yes", "--resume", "r"); got.code != 0 || !strings.Contains(got.err, "run_command (call call_1_0 of run a-") || strings.Contains(got.err, "First a question") {
		t.Fatalf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(p.workspace, "hello.txt")); err != nil {
		t.Error(err)
	}
	roots := call(t, nil, "", "list", "--data", p.data)
	all := call(t, nil, "", "list", "--data", p.data, "--all")
	if strings.Contains(roots.out, "a-") || strings.Count(all.out, "\na-") != 2 {
		t.Errorf("%s\n%s", roots.out, all.out)
	}
}

// TestTwoSubAgentsWait: a command that could mean either names both and what to type.
func TestTwoSubAgentsWait(t *testing.T) {
	p := newPlace(t, `turns:
  - {text: Two., calls: [{name: left, arguments: {prompt: Go.}}, {name: right, arguments: {prompt: Go.}}]}
  - {text: All is done., calls: [{name: work_complete, arguments: {summary: done}}]}
`)
	script := `turns:
  - {text: A question., calls: [{name: ask_user, arguments: {question: "Which side?"}}]}
  - {text: Answered., calls: [{name: work_complete, arguments: {summary: answered}}]}
`
	agent := p.tree(t, map[string]string{"left": script, "right": script}, "left", "right")
	if got := call(t, nil, "", p.runTree(agent, "--run-id", "r", "go")...); got.code != 4 {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"r", "west"}, {"r", "call_1_0", "west"}} {
		got := call(t, nil, "", append([]string{"answer", "--data", p.data}, args...)...)
		commands := regexp.MustCompile(`harness answer (a-[a-z2-7]{24}) call_1_0 ANSWER`).FindAllStringSubmatch(got.err, -1)
		if got.code != 1 || len(commands) != 2 || commands[0][1] == commands[1][1] {
			t.Fatalf("%v: %+v", args, got)
		}
		if len(args) == 2 {
			continue
		}
		for _, c := range commands {
			if got := call(t, nil, "", "answer", "--data", p.data, "--no-resume", c[1], "call_1_0", "west"); got.code != 0 {
				t.Fatalf("%+v", got)
			}
		}
	}
	if got := call(t, nil, "", "resume", "--data", p.data, "r"); got.code != 0 || !slices.Contains(strings.Split(got.err, "\n"), "  left │   ✓ ask_user  west") {
		t.Errorf("%+v", got)
	}
}
