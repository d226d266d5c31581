//go:build linux

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

const (
	waits = `turns:
  - text: I have to know.
    calls:
      - {name: ask_user, arguments: {question: "Which colour?", options: [red, dark blue]}}
      - {name: lookup_order, arguments: {id: 12}}
      - {name: run_command, arguments: {command: echo hello > hello.txt}}
  - {calls: [{name: work_complete, arguments: {summary: It is painted.}}]}
`
	hasClient = harnesstest.Asking + `client_tools:
  - {name: lookup_order, description: Finds an order., parameters_schema: {type: object, properties: {id: {type: integer}}, required: [id]}}
answer_timeout: 36h
`
)

func TestLocalAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, waits)
	data := " --data " + p.Data + "\n"
	got := harnesstest.Call(t, nil, "", p.Run(append(p.Agent(t, hasClient), "--run-id", "r", "go")...)...)
	for _, part := range []string{
		"? the agent asks: Which colour? [1] red [2] dark blue\n", "\nasks: Which colour?\n  [1] red\n  [2] dark blue\n  call call_1_0 · expires in 35 h\n",
		"\n  harness answer r call_1_0 ANSWER" + data, "\n  harness answer r call_1_1 RESULT" + data, "\n  harness approve r call_1_2" + data,
		"and then: harness resume r" + data,
	} {
		if got.Code != 4 || !strings.Contains(got.Err, part) {
			t.Fatalf("%q is missing in %+v", part, got)
		}
	}
	const stored = "the answer to call_1_1 is stored and not taken in yet"
	if got := harnesstest.Call(t, nil, "", "show", "r", "--data", p.Data); got.Code != 0 || strings.Contains(got.Out, stored) {
		t.Errorf("%+v", got)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"answer", "r", "red"}, 1, "name the CALL"},
		{[]string{"answer", "r", "call_1_2", "yes"}, 1, "harness approve r call_1_2"},
		{[]string{"approve", "r", "call_1_0"}, 1, "harness answer r call_1_0 ANSWER"},
		{[]string{"answer", "r", "call_1_0", "dark", "blue"}, 0, "the answer to call_1_0 is stored; no process is using"},
		{[]string{"answer", "r", "call_1_0", "red"}, 1, "already has an answer"},
		{[]string{"answer", "r", "--call", "call_1_1", "--error", "no such order"}, 0, "the answer to call_1_1 is stored"},
		{[]string{"approve", "r"}, 0, "the answer to call_1_2 is stored"},
	} {
		if got := harnesstest.Call(t, nil, "", append(test.args, "--data", p.Data)...); got.Code != test.code || got.Out != "" || !strings.Contains(got.Err, test.want) {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
	if got := harnesstest.Call(t, nil, "", "show", "r", "--data", p.Data); got.Code != 0 || !strings.Contains(got.Out, stored) {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "r", "--data", p.Data); got.Code != 0 || !strings.Contains(got.Out, "It is painted.") {
		t.Errorf("%+v", got)
	}
	got = harnesstest.Call(t, nil, "", "show", "r", "--data", p.Data, "--conversation")
	for _, part := range []string{"tool ask_user:\n  dark blue\n", "tool lookup_order (error):\n  no such order\n", "[exit code 0]"} {
		if !strings.Contains(got.Out, part) {
			t.Errorf("%q is missing in %s", part, got.Out)
		}
	}
	if _, err := os.Stat(filepath.Join(p.Workspace, "hello.txt")); err != nil {
		t.Error(err)
	}
	if got := harnesstest.Call(t, nil, "", "answer", "r", "call_1_0", "red", "--data", p.Data); got.Code != 1 || !strings.Contains(got.Err, "already has an answer") {
		t.Errorf("%+v", got)
	}
}

func TestAQuestionAtTheTerminalOfALocalRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, `turns:
  - {calls: [{name: ask_user, arguments: {question: "Which colour?", options: [red, dark blue]}}]}
  - {when: {last_contains: dark blue}, text: Blue it is., calls: [{name: work_complete, arguments: {summary: Painted.}}]}
`)
	cmd := harnesstest.Program(t, p.Run("go")...)
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, yourAnswer, 1)
	fmt.Fprint(keyboard, "2\n")
	screen.Expect(t, "Blue it is.", 1)
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

func TestAutonomousAgentPromptsNoUser(t *testing.T) {
	t.Parallel()
	p := harnesstest.NewPlace(t, waits)
	got := harnesstest.Call(t, nil, "", p.Run(append(p.Agent(t, "autonomous: true\n"+hasClient), "--allow", "*", "--run-id", "r", "go")...)...)
	if got.Code != 4 || strings.Contains(got.Err, "harness answer r call_1_0") || !strings.Contains(got.Err, "harness answer r call_1_1 RESULT") {
		t.Errorf("%+v", got)
	}
}

func TestLocalDelete(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Asks)
	if got := harnesstest.Call(t, nil, "", p.RunAsking(t, "--run-id", "r", "go")...); got.Code != 4 {
		t.Fatalf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "delete", "r", "--data", p.Data); got.Code != 0 || !strings.HasPrefix(got.Out, "r deleted; ") || strings.Count(got.Out+got.Err, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "delete", "r", "--data", p.Data); got.Code != 0 || got.Out != "r deleted before\n" {
		t.Errorf("%+v", got)
	}
	for _, verb := range []string{"show", "resume", "watch", "approve", "cancel"} {
		if got := harnesstest.Call(t, nil, "", verb, "r", "--data", p.Data); got.Code != 1 || got.Err != "harness: run default/r was deleted\n" {
			t.Errorf("%s: %+v", verb, got)
		}
	}
	if got := harnesstest.Call(t, nil, "", "list", "--data", p.Data, "--output", "json"); got.Out != "{\"runs\":[]}\n" {
		t.Errorf("%+v", got)
	}
}

// A run that would fail for want of its model is not touched.
func TestARunWhoseModelIsNotThere(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Asks)
	if got := harnesstest.Call(t, nil, "", p.RunAsking(t, "--run-id", "r", "go")...); got.Code != 4 {
		t.Fatalf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "approve", "r", "--data", p.Data); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	aside := p.Script + ".aside"
	if err := os.Rename(p.Script, aside); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"resume", "r"}, {"run", "--continue", "r", "more"}} {
		got := harnesstest.Call(t, nil, "", append(args, "--data", p.Data)...)
		if got.Code != 1 || strings.Count(got.Err, "\n") != 1 || !strings.HasPrefix(got.Err, "harness: run r cannot continue here and is unchanged: "+p.Script) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if err := os.Rename(aside, p.Script); err != nil {
		t.Fatal(err)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "r", "--data", p.Data); got.Code != 0 || !strings.Contains(got.Out, "It ran.") {
		t.Errorf("%+v", got)
	}
}

func TestFallbackModelResumesTheRunOfAMissingModel(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Asks)
	other := p.Script + ".other"
	if err := os.WriteFile(other, []byte(harnesstest.Asks), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := harnesstest.Call(t, nil, "", p.Run(append(p.Agent(t, harnesstest.Asking+"fallback_models: ['script:"+other+"']"), "--run-id", "r", "go")...)...); got.Code != 4 {
		t.Fatalf("%+v", got)
	}
	if err := os.Remove(p.Script); err != nil {
		t.Fatal(err)
	}
	if got := harnesstest.Call(t, nil, "", "approve", "r", "--data", p.Data); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "r", "--data", p.Data); got.Code != 0 || !strings.Contains(got.Out, "It ran.") || !strings.Contains(got.Err, "script:"+other+" replaces it") {
		t.Errorf("%+v", got)
	}
}

func TestABudgetIsExtendedByTheCommandThatIsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, `turns:
  - {calls: [{name: list_directory, arguments: {}}, {name: list_directory, arguments: {}}]}
  - {calls: [{name: work_complete, arguments: {summary: All seen.}}]}
`)
	got := harnesstest.Call(t, nil, "", p.Run("--run-id", "r", "--max-tool-calls", "2", "go")...)
	_, command, found := strings.Cut(got.Err, "to continue: harness ")
	if got.Code != 4 || !found {
		t.Fatalf("%+v", got)
	}
	args := strings.Fields(command)
	if want := []string{"resume", "r", "--max-tool-calls", "4", "--data", p.Data}; !slices.Equal(args, want) {
		t.Fatalf("%q, want %q", args, want)
	}
	if got := harnesstest.Call(t, nil, "", "resume", "r", "--data", p.Data, "--max-tool-calls", "2"); got.Code != 1 || !strings.HasPrefix(got.Err, "harness: --max-tool-calls: 2 is not above the 2") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", args...); got.Code != 0 || !strings.Contains(got.Out, "All seen.") {
		t.Errorf("%+v", got)
	}
}
