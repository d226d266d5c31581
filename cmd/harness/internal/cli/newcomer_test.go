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
	versioned := filepath.Join(filepath.Dir(p.Script), "agent.yaml")
	if err := os.WriteFile(versioned, []byte("version: 99\nname: x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(p.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  string
	}{
		"letters that changed places": {[]string{"shwo", "last"}, "", `unknown verb "shwo": did you mean harness show?`},
		"a letter too many":           {[]string{"runn", "go"}, "", "did you mean harness run?"},
		"the beginning of a verb":     {[]string{"inter", "r"}, "", "did you mean harness interrupt?"},
		"a word of another program":   {[]string{"stop", "r"}, "", "did you mean harness interrupt or harness cancel?"},
		"another one":                 {[]string{"ls"}, "", "did you mean harness list?"},
		"an answer as a verb":         {[]string{"deny", "r"}, "", "did you mean harness approve?"},
		"a goal without a verb":       {[]string{"fix the tests"}, "", "harness run 'fix the tests'"},
		"no verb near":                {[]string{"frobnicate"}, "", "harness help lists all verbs"},
		"nothing":                     {nil, "", "harness run GOAL starts a run"},
		"a server that is not there":  {[]string{"list", "--server", "127.0.0.1:1"}, "", "--server 127.0.0.1:1: no gateway answers there (connection refused)"},
		"a run for it":                {[]string{"run", "--server", "127.0.0.1:1", "--model", "openai:m", "go"}, "", "--server 127.0.0.1:1: no gateway answers there"},
		"no such workspace":           {[]string{"run", "--data", p.Data, "--model", "script:" + p.Script, "--workspace", p.Workspace + "/none", "go"}, "", "/none does not exist: create it"},
		"a version of an agent file":  {p.Run("--agent", versioned, "go"), "", "these files have no version"},
		"a tool that is misspelt":     {p.Run("--allow", "run_comand", "go"), "", `--allow: no tool has the name "run_comand": did you mean run_command?`},
		"a command as a tool":         {p.Run("--allow", "git", "go"), "", "--allow: no tool has the name \"git\" (a command is no tool"},
		"a goal of 3 MB":              {p.Run("-"), strings.Repeat("x", 3_000_000), "GOAL: 3000000 bytes, at most 1048576: write the text to a file"},
		"a goal of 4 MB":              {p.Run("-"), strings.Repeat("x", 4_000_000), "write the text to a file in the workspace"},
		"a log that is too long":      {p.Run("go"), strings.Repeat("x", 300_000), "standard input: larger than 256 KiB"},
		"a picture":                   {p.Run("go"), "\x89PNG\xff\xfe", "standard input: not UTF-8 text"},
		"a run that is not there":     {[]string{"show", "none", "--data", p.Data}, "", "none"},
	} {
		got := harnesstest.Call(t, nil, c.stdin, c.args...)
		if got.Code != 1 || !strings.Contains(got.Err, c.want) || strings.Count(got.Err, "\n") != 1 || got.Out != "" || strings.Contains(got.Err, "spec.") || strings.Contains(got.Err, "rpc error") {
			t.Errorf("%s: want %q, got %.600s", name, c.want, fmt.Sprintf("%+v", got))
		}
	}
}
