//go:build linux

package steer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// aCommand is a call of run_command for which a rule is proposed.
func aCommand(command, prefix string) *harnessv1.PendingCall {
	call := harnesstest.AnApproval("c1")
	arguments, _ := json.Marshal(map[string]any{"command": command, "timeout_seconds": 60})
	call.Arguments = content.Inline(string(arguments))
	call.Preview = &harnessv1.CallPreview{Digest: strings.Repeat("0123456789abcdef", 4), Command: &harnessv1.CommandPreview{Directory: "/srv/work"}}
	if prefix != "" {
		call.Preview.Rules = []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW, Prefix: prefix}}
	}
	return call
}

// TestARuleIsShownBeforeItIsStored: the user reads what will be allowed, and can write another
// rule, which is shown too.
func TestARuleIsShownBeforeItIsStored(t *testing.T) {
	t.Parallel()
	const shown = "For this run: commands that begin with `"
	for _, test := range []struct {
		name   string
		lines  []string // each after the prompt that it answers
		prompt []string
		want   string // the prefixes that are stored; * for the tool
	}{
		{"the proposal", []string{"a", ""}, []string{"[n] no: ", shown + "go test`."}, "go test"},
		{"an exact one", []string{"a", "exactly go run x", ""}, []string{"[n] no: ", "Rule [go test]: ", "For this run: exactly `go run x`."}, "exactly go run x"},
		{"another", []string{"a", "go ; tail", ""}, []string{"[n] no: ", "Rule [go test]: ", shown + "go` or `tail`."}, "go,tail"},
		{"no rule", []string{"a", "go; sudo", "$(x)", ""}, []string{"[n] no: ", "Rule [go test]: ", `no rule: tools[1].prefix`, `no rule: prefix`}, "go test"},
		{"the whole tool", []string{"a", "*", ""}, []string{"[n] no: ", "*: all calls of run_command", "For this run: all calls of run_command, whatever their arguments."}, "*"},
		{"back", []string{"a", "n", "y"}, []string{"[n] no: ", "Rule [go test]: ", "[a] for this run"}, "once"},
	} {
		f := harnesstest.ServeGateway(t)
		untilAnswered(f, aCommand("go test ./...", "go test"))
		cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
		screen, keyboard := harnesstest.OnTerminal(t, cmd)
		for i, line := range test.lines {
			n := 1
			if i > 0 && test.prompt[i] == "[a] for this run" {
				n = 2
			}
			screen.Expect(t, test.prompt[i], n)
			fmt.Fprintln(keyboard, line)
		}
		if code := harnesstest.ExitCode(t, cmd); code != 0 {
			t.Errorf("%s: exit code %d:\n%s", test.name, code, screen)
		}
		if got := strings.Join(stored(f), " "); got != test.want {
			t.Errorf("%s: %s is stored, want %s", test.name, got, test.want)
		}
	}
}

// stored returns the rules of the approvals that were sent.
func stored(f *harnesstest.Gateway) []string {
	var all []string
	for _, a := range f.Approvals() {
		var rules []string
		for _, r := range a.GetRules() {
			rules = append(rules, render.Rule(r))
		}
		switch {
		case a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN:
			rules = []string{"once"}
		case rules == nil:
			rules = []string{"*"}
		}
		all = append(all, strings.Join(rules, ","))
	}
	return all
}

// TestAnApprovalWithChangedArguments: the editor has the command, the changed call is shown,
// and only a yes after that runs it.
func TestAnApprovalWithChangedArguments(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	untilAnswered(f, aCommand("go test ./... && echo '<done>'", ""))
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	cmd.Env = append(cmd.Env, "EDITOR=sed -i -e s/done/donx/ -e s/go.test/go.vet/")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[e] edit  [n] no: ", 1)
	fmt.Fprintln(keyboard, "e")
	screen.Expect(t, "changed by you:", 1)
	screen.Expect(t, "│ go.vet ./... && echo '<donx>'", 1)
	screen.Expect(t, "timeout_seconds: 60", 2)
	screen.Expect(t, "[e] edit again  [u] undo  [n] no: ", 1)
	fmt.Fprintln(keyboard, "u")
	screen.Expect(t, "[e] edit  [n] no: ", 2)
	fmt.Fprintln(keyboard, "e")
	screen.Expect(t, "[e] edit again  [u] undo  [n] no: ", 2)
	fmt.Fprintln(keyboard, "a") // a changed call is approved once
	screen.Expect(t, "[e] edit again  [u] undo  [n] no: ", 3)
	fmt.Fprintln(keyboard, "y")
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	got := f.Approvals()
	if len(got) != 1 || got[0].GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE || got[0].GetDigest() == "" {
		t.Fatalf("got %v", got)
	}
	var given map[string]any
	if err := json.Unmarshal([]byte(got[0].GetArguments().GetInline()), &given); err != nil || !strings.HasPrefix(given["command"].(string), "go.vet ./...") || given["timeout_seconds"] != 60.0 {
		t.Errorf("got %v, %v", given, err)
	}
}

// TestArgumentsThatAreRefusedLoseNothing: an editor that fails, a text that is no JSON, and
// arguments that the run refuses lead back to the question.
func TestArgumentsThatAreRefusedLoseNothing(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	call := harnesstest.AnApproval("c1")
	call.Tool, call.Arguments = "write_file", content.Inline(`{"path":"a","content":"b"}`)
	untilAnswered(f, call)
	f.Refuse = "approval.arguments: /content: got number, want string"
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	script := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
n=$(cat "$0.n" 2>/dev/null || echo 0); echo $((n+1)) >"$0.n"
case $n in
0) exit 3;;
1) sed -i 's/"b"/7,,/' "$1";;
2) grep -q 7,, "$1" && sed -i 's/7,,/7/' "$1";;
3) sed -i 's/: 7/: "c"/' "$1";;
esac
`), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "VISUAL="+script)
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[e] edit  [n] no: ", 1)
	fmt.Fprintln(keyboard, "e")
	screen.Expect(t, "failed (exit status 3), so nothing is changed", 1)
	screen.Expect(t, "[e] edit  [n] no: ", 2)
	fmt.Fprintln(keyboard, "e")
	screen.Expect(t, "the arguments are not JSON: line 3", 1)
	screen.Expect(t, "[e] edit  [n] no: ", 3)
	fmt.Fprintln(keyboard, "e")
	screen.Expect(t, "content: 7", 1)
	screen.Expect(t, "[e] edit again", 1)
	fmt.Fprintln(keyboard, "y")
	screen.Expect(t, "Not accepted: approval.arguments: /content", 1)
	screen.Expect(t, "[e] edit again", 2)
	f.Mu.Lock()
	f.Refuse = ""
	f.Mu.Unlock()
	fmt.Fprintln(keyboard, "e")
	screen.Expect(t, "[e] edit again", 3)
	fmt.Fprintln(keyboard, "y")
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	if got := f.Approvals(); len(got) != 1 || !strings.Contains(got[0].GetArguments().GetInline(), `"content": "c"`) {
		t.Errorf("got %v", got)
	}
}

// TestWhatIsTypedIntoAPagerIsNoAnswer: a yes counts only after the last lines were printed.
func TestWhatIsTypedIntoAPagerIsNoAnswer(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	untilAnswered(f, aHeredoc(600))
	dir := t.TempDir()
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	cmd.Env = append(cmd.Env, "PAGER=cat >/dev/null; echo PAGING; until [ -e "+dir+"/go ]; do :; done")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[v] pager", 1)
	fmt.Fprintln(keyboard, "v")
	screen.Expect(t, "PAGING", 1)
	fmt.Fprint(keyboard, "y\ny\n")
	screen.Expect(t, "y\r\ny\r\n", 1)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	screen.Expect(t, "The pager has ended. The last lines of the call:", 1)
	screen.Expect(t, "# the end", 1)
	screen.Expect(t, "Allow it? [y] once", 1)
	fmt.Fprintln(keyboard, "what") // comes after everything that was typed before
	screen.Expect(t, "Allow it? [y] once", 2)
	if len(f.Approvals()) > 0 {
		t.Errorf("answered by %v", f.Approvals())
	}
	fmt.Fprintln(keyboard, "y")
	if code := harnesstest.ExitCode(t, cmd); code != 0 || len(f.Approvals()) != 1 {
		t.Errorf("exit code %d, %v:\n%s", code, f.Approvals(), screen)
	}
}

// TestApproveWithRulesAndArguments without a terminal.
func TestApproveWithRulesAndArguments(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	command := aCommand("go test ./... | tail", "go test")
	file := harnesstest.AnApproval("c1")
	file.Tool = "write_file"
	arguments := filepath.Join(t.TempDir(), "arguments.json")
	if err := os.WriteFile(arguments, []byte("{\"command\": \"go vet\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct {
		call  *harnessv1.PendingCall
		stdin string
		args  []string
		want  string // stored
		says  string
	}{
		{command, "", []string{"--rule", "go test", "--rule", "tail"}, "go test,tail", "allowed for this run: commands that begin with `go test` or `tail`\n"},
		{command, "", []string{"--rule", "exactly go test ./... | tail"}, "exactly go test ./... | tail", "allowed for this run: exactly `go test ./... | tail`\n"},
		{command, "", []string{"--rule", "go, test"}, "go, test", "`go, test`\n"},
		{file, "", []string{"--rule", "docs/**"}, "docs/**", "allowed for this run: write_file in docs/**\n"},
		{command, "", []string{"--always"}, "*", "allowed for this run: all calls of run_command\n"},
		{command, "", []string{"--arguments", arguments}, "once", "changed by you:\n  in /srv/work"},
		{command, `{"command":"pwd"}`, []string{"--arguments", "-"}, "once", "│ pwd\n"},
		{command, "", []string{"--rule", "go test; rm"}, "", "--rule: no rule: prefix"},
		{command, "", []string{"--rule", "go", "--always"}, "", "--rule takes none of"},
		{command, "", []string{"--arguments", arguments, "--always"}, "", "--arguments takes none of"},
		{command, "[]", []string{"--arguments", "-"}, "", "--arguments: -: the arguments are not a JSON object"},
		{command, "{", []string{"--arguments", "-"}, "", "--arguments: -: the arguments are not JSON: line 1"},
		{command, "", []string{"--arguments", "/nowhere"}, "", "--arguments: /nowhere does not exist"},
		{harnesstest.AReview("c1"), "", []string{"--rule", "go"}, "", "--rule: call c1 waits for a review"},
	} {
		id := fmt.Sprint("r", i)
		f.Add(id, "default", harnesstest.ASpec()).Waits(test.call)
		before := len(f.Approvals())
		got := harnesstest.Call(t, nil, test.stdin, append([]string{"approve", id, "--server", f.Address}, test.args...)...)
		if (got.Code == 0) != (test.want != "") || !strings.Contains(got.Err, test.says) {
			t.Errorf("%q: %+v", test.args, got)
		}
		if sent := strings.Join(stored(f)[before:], " "); sent != test.want {
			t.Errorf("%q stored %q, want %q", test.args, sent, test.want)
		}
	}
	f.Mu.Lock()
	f.Refuse = "approval.rules[0]: too wide"
	f.Mu.Unlock()
	f.Add("refused", "default", harnesstest.ASpec()).Waits(command)
	if got := harnesstest.Call(t, nil, "", "approve", "refused", "--server", f.Address, "--rule", "go test"); got.Code == 0 || strings.Contains(got.Err, "allowed") || !strings.Contains(got.Err, "too wide") {
		t.Errorf("a rule that the gateway refuses: %+v", got)
	}
	if last := f.Approvals()[6]; last.GetArguments().GetInline() != `{"command":"pwd"}` {
		t.Errorf("sent %v", last)
	}
}
