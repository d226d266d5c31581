package admin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// TestPromptsFromTheCommandLine: each is listed, set for a tier, shown and restored.
func TestPromptsFromTheCommandLine(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	data := t.TempDir()
	prompt := func(stdin string, args ...string) string {
		t.Helper()
		got := harnesstest.Call(t, nil, stdin, append(append([]string{"prompt"}, args...), "--data", data)...)
		if got.Code != 0 {
			t.Fatalf("%v: code %d, %s", args, got.Code, got.Err)
		}
		return got.Out
	}
	text, _ := quality.BuiltIn(quality.PromptVerifier)
	if out, want := prompt("Be strict.\n", "set", "verifier_system", "--tier", "gold"), "verifier_system "+quality.PromptDigest("Be strict.")+" (set)\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out := prompt("", "show", "verifier_system", "--tier", "gold"); out != "Be strict.\n" {
		t.Errorf("%q", out)
	}
	if out := prompt("", "show", "verifier_system", "--tier", "silver"); out != text+"\n" {
		t.Errorf("%q", out)
	}
	list := prompt("", "list")
	for _, id := range quality.PromptIDs() {
		if !strings.Contains(list, id+" ") {
			t.Errorf("%s is missing: %s", id, list)
		}
	}
	if strings.Count(list, "\n") != len(quality.PromptIDs())+2 || !strings.Contains(list, "gold") || strings.Count(list, "built in") != len(quality.PromptIDs()) {
		t.Errorf("%s", list)
	}
	file := filepath.Join(t.TempDir(), "strict.txt")
	if err := os.WriteFile(file, []byte("Be kind."), 0o600); err != nil {
		t.Fatal(err)
	}
	prompt("", "set", "verifier_system", "--file", file)
	if out, want := prompt("", "unset", "verifier_system", "--tier", "gold"), "verifier_system "+quality.PromptDigest("Be kind.")+" (set)\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out, want := prompt("", "unset", "verifier_system"), "verifier_system "+quality.PromptDigest(text)+" (built in)\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestProfileFromTheCommandLine of a folder, and of a name.
func TestProfileFromTheCommandLine(t *testing.T) {
	t.Parallel()
	data, workspace := t.TempDir(), t.TempDir()
	got := harnesstest.Call(t, nil, "", "profile", "show", workspace, "--data", data)
	if got.Code != 0 || !strings.Contains(got.Out, filepath.Base(workspace)+"\nmaturity: new, 0 runs\n") {
		t.Errorf("%v", got)
	}
	got = harnesstest.Call(t, nil, "", "profile", "show", "reports", "--output", "json", "--data", data)
	var figures map[string]any
	if err := json.Unmarshal([]byte(got.Out), &figures); err != nil || figures["profile"] != "reports" || figures["quality_multiplier"] != 0.85 {
		t.Errorf("%v: %v", got, err)
	}
	got = harnesstest.Call(t, nil, "", "profile", "reset", "reports", "--data", data)
	if got.Code != 0 || !strings.Contains(got.Err, "the profile of reports is new") {
		t.Errorf("%v", got)
	}
}

// TestPromptRefusesMistakes with one line.
func TestPromptRefusesMistakes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, c := range []struct{ args, stdin, want string }{
		{"prompt set verifier", "x", `unknown prompt "verifier": must be one of complexity_classifier, `},
		{"prompt show verifier", "", `unknown prompt "verifier": must be one of complexity_classifier, `},
		{"prompt unset verifier", "", `unknown prompt "verifier": must be one of complexity_classifier, `},
		{"prompt set healing", " \n", "the text is empty: harness prompt unset restores the built-in prompt"},
		{"prompt set healing --file nowhere.txt", "", "nowhere.txt does not exist"},
		{"prompt set healing --tier a/b", "x", `tier: "a/b": must match`},
		{"prompt set healing", strings.Repeat("x", 16385), "text: 16385 bytes: at most 16384"},
		{"prompt set", "x", "<id>"},
		{"profile show ./nowhere", "", "nowhere: no such file"},
		{"profile show reports --output xml", "", "text"},
	} {
		got := harnesstest.Call(t, nil, c.stdin, append(strings.Fields(c.args), "--data", data)...)
		if got.Code != 1 || !strings.Contains(got.Err, c.want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%s: code %d, %q, want %q", c.args, got.Code, got.Err, c.want)
		}
	}
}
