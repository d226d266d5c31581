//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	hasClient = asking + `client_tools:
  - {name: lookup_order, description: Finds an order., parameters_schema: {type: object, properties: {id: {type: integer}}, required: [id]}}
answer_timeout: 36h
`
)

// agent writes an agent file and returns its flag.
func (p place) agent(t *testing.T, text string) []string {
	t.Helper()
	file := filepath.Join(filepath.Dir(p.script), "agent.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"--agent", file}
}

func TestLocalAnswers(t *testing.T) {
	p := newPlace(t, waits)
	data := " --data " + p.data + "\n"
	got := call(t, nil, "", p.run(append(p.agent(t, hasClient), "--run-id", "r", "go")...)...)
	for _, part := range []string{
		"? the agent asks: Which colour? [1] red [2] dark blue\n", "\nasks: Which colour?\n  [1] red\n  [2] dark blue\n  call call_1_0 · expires in 35 h\n",
		"\n  harness answer r call_1_0 ANSWER" + data, "\n  harness answer r call_1_1 RESULT" + data, "\n  harness approve r call_1_2" + data,
		"and then: harness resume r" + data,
	} {
		if got.code != 4 || !strings.Contains(got.err, part) {
			t.Fatalf("%q is missing in %+v", part, got)
		}
	}
	const stored = "the answer to call_1_1 is stored and not taken in yet"
	if got := call(t, nil, "", "show", "r", "--data", p.data); got.code != 0 || strings.Contains(got.out, stored) {
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
		if got := call(t, nil, "", append(test.args, "--data", p.data)...); got.code != test.code || got.out != "" || !strings.Contains(got.err, test.want) {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
	if got := call(t, nil, "", "show", "r", "--data", p.data); got.code != 0 || !strings.Contains(got.out, stored) {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "resume", "r", "--data", p.data); got.code != 0 || !strings.Contains(got.out, "It is painted.") {
		t.Errorf("%+v", got)
	}
	got = call(t, nil, "", "show", "r", "--data", p.data, "--conversation")
	for _, part := range []string{"tool ask_user:\n  dark blue\n", "tool lookup_order (error):\n  no such order\n", "[exit code 0]"} {
		if !strings.Contains(got.out, part) {
			t.Errorf("%q is missing in %s", part, got.out)
		}
	}
	if _, err := os.Stat(filepath.Join(p.workspace, "hello.txt")); err != nil {
		t.Error(err)
	}
	if got := call(t, nil, "", "answer", "r", "call_1_0", "red", "--data", p.data); got.code != 1 || !strings.Contains(got.err, "already has an answer") {
		t.Errorf("%+v", got)
	}
}

func TestAQuestionAtTheTerminalOfALocalRun(t *testing.T) {
	p := newPlace(t, `turns:
  - {calls: [{name: ask_user, arguments: {question: "Which colour?", options: [red, dark blue]}}]}
  - {when: {last_contains: dark blue}, text: Blue it is., calls: [{name: work_complete, arguments: {summary: Painted.}}]}
`)
	cmd := program(t, p.run("go")...)
	screen, keyboard := onTerminal(t, cmd)
	screen.expect(t, yourAnswer, 1)
	fmt.Fprint(keyboard, "2\n")
	screen.expect(t, "Blue it is.", 1)
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

func TestAutonomousAgentPromptsNoUser(t *testing.T) {
	p := newPlace(t, waits)
	got := call(t, nil, "", p.run(append(p.agent(t, "autonomous: true\n"+hasClient), "--allow", "*", "--run-id", "r", "go")...)...)
	if got.code != 4 || strings.Contains(got.err, "harness answer r call_1_0") || !strings.Contains(got.err, "harness answer r call_1_1 RESULT") {
		t.Errorf("%+v", got)
	}
}

func TestLocalDelete(t *testing.T) {
	p := newPlace(t, asks)
	if got := call(t, nil, "", p.runAsking(t, "--run-id", "r", "go")...); got.code != 4 {
		t.Fatalf("%+v", got)
	}
	if got := call(t, nil, "", "delete", "r", "--data", p.data); got.code != 0 || !strings.HasPrefix(got.out, "r deleted; ") || strings.Count(got.out+got.err, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "delete", "r", "--data", p.data); got.code != 0 || got.out != "r deleted before\n" {
		t.Errorf("%+v", got)
	}
	for _, verb := range []string{"show", "resume", "watch", "approve", "cancel"} {
		if got := call(t, nil, "", verb, "r", "--data", p.data); got.code != 1 || got.err != "harness: run default/r was deleted\n" {
			t.Errorf("%s: %+v", verb, got)
		}
	}
	if got := call(t, nil, "", "list", "--data", p.data, "--output", "json"); got.out != "{\"runs\":[]}\n" {
		t.Errorf("%+v", got)
	}
}

// A run that would fail for want of its model is not touched.
func TestARunWhoseModelIsNotThere(t *testing.T) {
	p := newPlace(t, asks)
	if got := call(t, nil, "", p.runAsking(t, "--run-id", "r", "go")...); got.code != 4 {
		t.Fatalf("%+v", got)
	}
	if got := call(t, nil, "", "approve", "r", "--data", p.data); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	aside := p.script + ".aside"
	if err := os.Rename(p.script, aside); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"resume", "r"}, {"run", "--continue", "r", "more"}} {
		got := call(t, nil, "", append(args, "--data", p.data)...)
		if got.code != 1 || strings.Count(got.err, "\n") != 1 || !strings.HasPrefix(got.err, "harness: run r cannot continue here and is unchanged: "+p.script) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if err := os.Rename(aside, p.script); err != nil {
		t.Fatal(err)
	}
	if got := call(t, nil, "", "resume", "r", "--data", p.data); got.code != 0 || !strings.Contains(got.out, "It ran.") {
		t.Errorf("%+v", got)
	}
}

func TestFallbackModelResumesTheRunOfAMissingModel(t *testing.T) {
	p := newPlace(t, asks)
	other := p.script + ".other"
	if err := os.WriteFile(other, []byte(asks), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := call(t, nil, "", p.run(append(p.agent(t, asking+"fallback_models: ['script:"+other+"']"), "--run-id", "r", "go")...)...); got.code != 4 {
		t.Fatalf("%+v", got)
	}
	if err := os.Remove(p.script); err != nil {
		t.Fatal(err)
	}
	if got := call(t, nil, "", "approve", "r", "--data", p.data); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := call(t, nil, "", "resume", "r", "--data", p.data); got.code != 0 || !strings.Contains(got.out, "It ran.") || !strings.Contains(got.err, "script:"+other+" replaces it") {
		t.Errorf("%+v", got)
	}
}

func TestABudgetIsExtendedByTheCommandThatIsPrinted(t *testing.T) {
	p := newPlace(t, `turns:
  - {calls: [{name: list_directory, arguments: {}}, {name: list_directory, arguments: {}}]}
  - {calls: [{name: work_complete, arguments: {summary: All seen.}}]}
`)
	got := call(t, nil, "", p.run("--run-id", "r", "--max-tool-calls", "2", "go")...)
	_, command, found := strings.Cut(got.err, "to continue: harness ")
	if got.code != 4 || !found {
		t.Fatalf("%+v", got)
	}
	args := strings.Fields(command)
	if want := []string{"resume", "r", "--max-tool-calls", "4", "--data", p.data}; !slices.Equal(args, want) {
		t.Fatalf("%q, want %q", args, want)
	}
	if got := call(t, nil, "", "resume", "r", "--data", p.data, "--max-tool-calls", "2"); got.code != 1 || !strings.HasPrefix(got.err, "harness: --max-tool-calls: 2 is not above the 2") {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", args...); got.code != 0 || !strings.Contains(got.out, "All seen.") {
		t.Errorf("%+v", got)
	}
}
