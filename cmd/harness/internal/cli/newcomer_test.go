package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestMistakesOfANewcomer checks that each is one sentence in the user's words, with the flag that they wrote.
func TestMistakesOfANewcomer(t *testing.T) {
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Finishes)
	file := func(name, text string) string {
		return harnesstest.Write(t, filepath.Join(filepath.Dir(p.Script), name), text)
	}
	versioned, folder := file("agent.yaml", "version: 99\nname: x\n"), t.TempDir()
	agent := func(name, text string) []string { return p.Run("--agent", file(name, text), "go") }
	if err := os.MkdirAll(p.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  string
	}{
		"letters that changed places":     {[]string{"shwo", "last"}, "", `unknown verb "shwo": did you mean harness show?`},
		"a letter too many":               {[]string{"runn", "go"}, "", "did you mean harness run?"},
		"the beginning of a verb":         {[]string{"inter", "r"}, "", "did you mean harness interrupt?"},
		"a word of another program":       {[]string{"stop", "r"}, "", "did you mean harness interrupt or harness cancel?"},
		"another one":                     {[]string{"ls"}, "", "did you mean harness list?"},
		"an answer as a verb":             {[]string{"deny", "r"}, "", "did you mean harness approve?"},
		"a goal without a verb":           {[]string{"fix the tests"}, "", "harness run 'fix the tests'"},
		"no verb near":                    {[]string{"frobnicate"}, "", "harness help lists all verbs"},
		"nothing":                         {nil, "", "harness run GOAL starts a run"},
		"a server that is not there":      {[]string{"list", "--server", "127.0.0.1:1"}, "", "--server 127.0.0.1:1: no gateway answers there (connection refused)"},
		"a run for it":                    {[]string{"run", "--server", "127.0.0.1:1", "--model", "openai:m", "go"}, "", "--server 127.0.0.1:1: no gateway answers there"},
		"no such workspace":               {[]string{"run", "--data", p.Data, "--model", "script:" + p.Script, "--workspace", p.Workspace + "/none", "go"}, "", "/none does not exist: create it"},
		"a version of an agent file":      {p.Run("--agent", versioned, "go"), "", "these files have no version"},
		"a version of a hook":             {agent("hook.yaml", "name: x\nhooks:\n  - version: 99\n    topic: before_step\n"), "", "hook.yaml:3:5: these files have no version: leave out version"},
		"a version of a contract":         {p.Run("--contract", versioned, "go"), "", "--contract: "},
		"a version of a catalogue":        {p.Run("--catalogue", versioned, "go"), "", "these files have no version: leave out version"},
		"an agent file that is not there": {p.Run("--agent", "none.yaml", "go"), "", "--agent: none.yaml does not exist: correct the path, or create the file"},
		"a contract that is not there":    {p.Run("--contract", "none.yaml", "go"), "", "--contract: none.yaml does not exist"},
		"a folder as an agent file":       {p.Run("--agent", folder, "go"), "", folder + " is a directory: name a file"},
		"a folder as a script":            {[]string{"run", "--data", p.Data, "--model", "script:" + folder, "go"}, "", "--model: " + folder + " is a directory: name a file"},
		"a script that is not there":      {[]string{"run", "--data", p.Data, "--model", "script:/none.yaml", "go"}, "", "--model: /none.yaml does not exist"},
		"a path as a model":               {[]string{"run", "--data", p.Data, "--model", "/none", "go"}, "", `--model: "/none": expected PROVIDER:NAME`},
		"a provider that is misspelt":     {[]string{"run", "--data", p.Data, "--model", "opanai:gpt-5", "go"}, "", `unknown provider "opanai" (did you mean openai?)`},
		"a key that is not set":           {[]string{"run", "--data", p.Data, "--model", "anthropic:claude-sonnet-5-5", "go"}, "", "--model: ANTHROPIC_API_KEY is not set: set it"},
		"a file as a workspace":           {[]string{"run", "--data", p.Data, "--model", "script:" + p.Script, "--workspace", p.Script, "go"}, "", "--workspace: " + p.Script + " is not a directory"},
		"a tab in YAML":                   {agent("tab.yaml", "name: x\ntools:\n\t- name: read_file\n"), "", "tab.yaml:3:2: not YAML: a tab at the beginning of the line: indent with spaces"},
		"a word for a list":               {agent("word.yaml", "name: x\ntools: read_file\n"), "", "word.yaml:2:8: tools: expected a list"},
		"a list for a word":               {agent("list.yaml", "name: [x]\n"), "", "list.yaml:1:7: name: expected a single value"},
		"a policy that is none":           {agent("maybe.yaml", "name: x\ntools: [{name: run_command, policy: maybe}]\n"), "", `policy: "maybe": expected one of allow, ask, deny`},
		"a tool of an agent file":         {agent("tool.yaml", "name: x\ntools: [{name: run_comand, policy: deny}]\n"), "", `tool.yaml:2:16: tools[0].name: unknown tool "run_comand": did you mean run_command?`},
		"a word for a number":             {p.Run("--max-turns", "many", "go"), "", `--max-turns: "many": expected a whole number, not below zero`},
		"a number below zero":             {p.Run("--max-turns", "-1", "go"), "", `--max-turns: "-1": expected a whole number, not below zero`},
		"a time without a unit":           {p.Run("--timeout", "soon", "go"), "", `--timeout: "soon": expected a duration above zero, such as 90s`},
		"a flag that is misspelt":         {p.Run("--max-turn", "3", "go"), "", `unknown flag --max-turn, did you mean "--max-turns"?`},
		"a mode that is none":             {p.Run("--mode", "yolo", "go"), "", `--mode: unknown mode "yolo": must be one of plan, execute`},
		"an empty goal":                   {p.Run(""), "", "GOAL is missing: write it after the flags"},
		"an attachment that is not there": {p.Run("--attach", "none.png", "go"), "", "--attach: none.png does not exist: correct the path, or create the file"},
		"a folder as a catalogue":         {p.Run("--catalogue", folder, "go"), "", "--catalogue: " + folder + " is a directory: name a file"},
		"a catalogue that is not there":   {p.Run("--catalogue", "none.yaml", "go"), "", "--catalogue: none.yaml does not exist"},
		"a file as the parent of --data":  {[]string{"run", "--data", versioned + "/data", "--model", "script:" + p.Script, "go"}, "", versioned + " is a file: name a directory with --data"},
		"a bound at the top":              {agent("bound.yaml", "name: x\nmax_turns: 3\n"), "", `bound.yaml:2:1: unknown field "max_turns": write it below stop, as stop: {max_turns: …}`},
		"a budget at the top":             {agent("budget.yaml", "name: x\ncost_usd: 3\n"), "", `unknown field "cost_usd": write it below budgets`},
		"a server without a port":         {[]string{"list", "--server", "localhost"}, "", `--server: "localhost": expected HOST:PORT`},
		"a port that is none":             {[]string{"list", "--server", "localhost:99999"}, "", `--server: "localhost:99999": port "99999": expected a number from 1 to 65535`},
		"a message that is empty":         {[]string{"send", "r", "--data", p.Data}, "", "TEXT is missing: write it after the flags"},
		"a tool that is misspelt":         {p.Run("--allow", "run_comand", "go"), "", `--allow: no tool has the name "run_comand": did you mean run_command?`},
		"a command as a tool":             {p.Run("--allow", "git", "go"), "", "--allow: no tool has the name \"git\" (a command is no tool"},
		"a goal of 3 MB":                  {p.Run("-"), strings.Repeat("x", 3_000_000), "GOAL: 3000000 bytes, at most 1048576: write the text to a file"},
		"a goal of 4 MB":                  {p.Run("-"), strings.Repeat("x", 4_000_000), "write the text to a file in the workspace"},
		"a log that is too long":          {p.Run("go"), strings.Repeat("x", 300_000), "standard input: larger than 256 KiB"},
		"a picture":                       {p.Run("go"), "\x89PNG\xff\xfe", "standard input: not UTF-8 text"},
		"a run that is not there":         {[]string{"show", "none", "--data", p.Data}, "", "none"},
	} {
		got := harnesstest.Call(t, nil, c.stdin, c.args...)
		if got.Code != 1 || !strings.Contains(got.Err, c.want) || strings.Count(got.Err, "\n") != 1 || got.Out != "" || strings.Contains(got.Err, "spec.") || strings.Contains(got.Err, "rpc error") {
			t.Errorf("%s: want %q, got %.600s", name, c.want, fmt.Sprintf("%+v", got))
		}
	}
}

// TestMistakesWithARun checks the mistakes that need a run: one that has ended, then one with a question.
func TestMistakesWithARun(t *testing.T) {
	t.Parallel()
	check := func(p harnesstest.Place, name, want string, args ...string) {
		t.Helper()
		got := harnesstest.Call(t, nil, "", append([]string{args[0], "--data", p.Data}, args[1:]...)...)
		if got.Code != 1 || !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 || got.Out != "" {
			t.Errorf("%s: want %q, got %+v", name, want, got)
		}
	}
	p := harnesstest.NewPlace(t, harnesstest.Finishes)
	harnesstest.Call(t, nil, "", p.Run("--run-id", "r", "go")...)
	check(p, "approve nothing", "run r waits for no approval", "approve", "last")
	check(p, "answer nothing", "run r waits for no answer", "answer", "last", "1")
	check(p, "resume what is done", "to continue it with a message: harness send r", "resume", "last")
	check(p, "stop what is done", "run r has ended (DONE): nothing to stop", "interrupt", "last")
	p = harnesstest.NewPlace(t, "turns:\n  - calls: [{name: ask_user, arguments: {question: Which, options: [red, blue]}}]\n")
	harnesstest.Call(t, nil, "", p.Run("--run-id", "q", "go")...)
	check(p, "approve a question", "waits for an answer, not for an approval: harness answer q ", "approve", "q")
}
