//go:build linux

package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// newTree writes the agent of a tree and returns its place. Its root calls "upper", which asks a
// question and calls "lower", whose command asks for approval.
func newTree(t *testing.T) (p harnesstest.Place, agent string) {
	t.Helper()
	p = harnesstest.NewPlace(t, `turns:
  - {text: I delegate., calls: [{name: upper, arguments: {prompt: Work on the upper part.}}]}
  - {text: All is done., calls: [{name: work_complete, arguments: {summary: done}}]}
`)
	return p, p.Tree(t, map[string]string{
		"upper": `turns:
  - {text: First a question., calls: [{name: ask_user, arguments: {question: "Which file?"}}]}
  - {text: Then the work., calls: [{name: lower, arguments: {prompt: Append a line.}}]}
  - {text: Done above., calls: [{name: work_complete, arguments: {summary: upper}}]}
`, "lower": harnesstest.Asks}, "upper/lower")
}

// durations differ from run to run, as do temporary folders.
var durations = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[0-9.]+m?s\b`) })

// places matches the lines of an approval that name where the command runs. They differ by
// machine, also in where they break.
var places = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)(asks to be run:\n).*?(  │ )`) })

// TestATreeOnATerminal: the runs of sub-agents are nested in the run that called them, and their
// questions and approvals name them, and the prompt takes the answers.
func TestATreeOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	for _, columns := range []string{"80", "140"} {
		for _, flags := range [][]string{nil, {"--tree=false"}} {
			p, agent := newTree(t)
			args := append(p.RunTree(agent, "--run-id", "r", "go"), flags...)
			cmd := harnesstest.Capable(harnesstest.Program(t, args...))
			cmd.Env = append(cmd.Env, "COLUMNS="+columns)
			screen, keyboard := harnesstest.OnTerminal(t, cmd)
			screen.Expect(t, "Your answer (Enter to skip): ", 1)
			_, _ = keyboard.Write([]byte("out\n"))
			screen.Expect(t, "[n] no: ", 1)
			_, _ = keyboard.Write([]byte("y\n"))
			if code := harnesstest.ExitCode(t, cmd); code != 0 {
				t.Errorf("exit code %d", code)
			}
			screen.Expect(t, "The agent completed the work.", 1)
			width := 80
			if columns == "140" {
				width = 140
			}
			got := seenAt(t, screen, width)
			if _, err := os.Stat(filepath.Join(p.Workspace, "hello.txt")); err != nil {
				t.Error(err)
			}
			if flags != nil {
				if strings.Contains(got, "upper │") || !strings.Contains(got, "The sub-agent upper (run a-") || !strings.Contains(got, "run_command of sub-agent lower (run a-") {
					t.Errorf("without the tree:\n%s", got)
				}
				continue
			}
			got = places().ReplaceAllString(got, "$1$2")
			lines := slices.DeleteFunc(strings.Split(got, "\n"), func(line string) bool { // differs by machine
				return strings.HasPrefix(line, "▌ run r ") || strings.Contains(line, "AS_PROGRAM")
			})
			harnesstest.Golden(t, "tree-"+columns+".txt", durations().ReplaceAllString(strings.Join(lines, "\n")+"\n", "TIME"))
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
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p, agent := newTree(t)
	got := harnesstest.Call(t, nil, "", p.RunTree(agent, "--run-id", "r", "--output", "jsonl", "go")...)
	if got.Code != 4 || !strings.Contains(got.Err, "of run a-") {
		t.Fatalf("%+v", got)
	}
	if lines := linesOf(t, got.Out); lines["upper"] == 0 || lines[""] == 0 || lines["offset"] == 0 {
		t.Errorf("jsonl has %v", lines)
	}
	got = harnesstest.Call(t, nil, "", "watch", "--data", p.Data, "--output", "jsonl", "--tree=false", "r")
	if lines := linesOf(t, got.Out); len(lines) != 1 {
		t.Errorf("jsonl of the run alone has %v", lines)
	}
	for _, verb := range [][]string{{"show", "r"}, {"list"}, {"list", "--all"}} {
		args := append(verb, "--data", p.Data)
		if got := harnesstest.Call(t, nil, "", args...); !strings.Contains(got.Out, " asks: Which file?") || !strings.Contains(got.Out, " call_1_0 ANSWER") || strings.Count(got.Out, "Which file?") != 1 {
			t.Errorf("%v: %+v", verb, got)
		}
	}
	if got := harnesstest.Call(t, nil, "", "approve", "--data", p.Data, "--yes", "r"); got.Code != 1 || !strings.Contains(got.Err, "harness answer r call_1_0 ANSWER") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "answer", "--data", p.Data, "--resume", "r", "out"); got.Code != 4 || !strings.Contains(got.Err, "upper │   ✓ ask_user  out") || !strings.Contains(got.Err, "waits for approval") {
		t.Fatalf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "approve", "--data", p.Data, "--yes", "--resume", "r"); got.Code != 0 || !strings.Contains(got.Err, "run_command (call call_1_0 of run a-") || strings.Contains(got.Err, "First a question") {
		t.Fatalf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(p.Workspace, "hello.txt")); err != nil {
		t.Error(err)
	}
	roots := harnesstest.Call(t, nil, "", "list", "--data", p.Data)
	all := harnesstest.Call(t, nil, "", "list", "--data", p.Data, "--all")
	if strings.Contains(roots.Out, "a-") || strings.Count(all.Out, "\na-") != 2 {
		t.Errorf("%s\n%s", roots.Out, all.Out)
	}
}

// TestTwoSubAgentsWait: a command that could mean either names both and what to type.
func TestTwoSubAgentsWait(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, `turns:
  - {text: Two., calls: [{name: left, arguments: {prompt: Go.}}, {name: right, arguments: {prompt: Go.}}]}
  - {text: All is done., calls: [{name: work_complete, arguments: {summary: done}}]}
`)
	script := `turns:
  - {text: A question., calls: [{name: ask_user, arguments: {question: "Which side?"}}]}
  - {text: Answered., calls: [{name: work_complete, arguments: {summary: answered}}]}
`
	agent := p.Tree(t, map[string]string{"left": script, "right": script}, "left", "right")
	if got := harnesstest.Call(t, nil, "", p.RunTree(agent, "--run-id", "r", "go")...); got.Code != 4 {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"r", "west"}, {"r", "call_1_0", "west"}} {
		got := harnesstest.Call(t, nil, "", append([]string{"answer", "--data", p.Data}, args...)...)
		commands := regexp.MustCompile(`harness answer (a-[a-z2-7]{24}) call_1_0 ANSWER`).FindAllStringSubmatch(got.Err, -1)
		if got.Code != 1 || len(commands) != 2 || commands[0][1] == commands[1][1] {
			t.Fatalf("%v: %+v", args, got)
		}
		if len(args) == 2 {
			continue
		}
		for _, c := range commands {
			if got := harnesstest.Call(t, nil, "", "answer", "--data", p.Data, "--no-resume", c[1], "call_1_0", "west"); got.Code != 0 {
				t.Fatalf("%+v", got)
			}
		}
	}
	if got := harnesstest.Call(t, nil, "", "resume", "--data", p.Data, "r"); got.Code != 0 || !slices.Contains(strings.Split(got.Err, "\n"), "  left │   ✓ ask_user  west") {
		t.Errorf("%+v", got)
	}
}
