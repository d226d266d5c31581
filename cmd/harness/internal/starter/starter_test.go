package starter_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/starter"
)

var update = flag.Bool("update", false, "write the files of examples/agents anew")

const examples = "../../../../examples/agents"

func TestEachExampleIsWithoutAProblem(t *testing.T) {
	for _, name := range starter.Names() {
		dir := filepath.Join(t.TempDir(), "new", name)
		paths, err := starter.Write(name, dir)
		if err != nil {
			t.Fatal(err)
		}
		scripts := map[string]int{"coding": 1}[name]
		if len(paths) != 2+scripts || filepath.Base(paths[0]) != "agent.yaml" || filepath.Base(paths[1]) != "contract.yaml" {
			t.Errorf("%s: %v", name, paths)
		}
		for _, path := range paths[:2] {
			if _, _, err := agentfile.Check(path, ""); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			kind := strings.TrimSuffix(filepath.Base(path), ".yaml")
			if !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=https://raw.githubusercontent.com/harnessmesh/harnessmesh/main/schemas/"+kind+".json\n")) {
				t.Errorf("%s names no schema in its first line", path)
			}
		}
	}
}

// TestTheExamplesAreWhatInitWrites holds the copies that people read on the web.
func TestTheExamplesAreWhatInitWrites(t *testing.T) {
	for _, name := range starter.Names() {
		paths, err := starter.Write(name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths[:2] {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			shown := filepath.Join(examples, name, filepath.Base(path))
			if *update {
				if err := os.WriteFile(shown, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(shown)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs: go test ./cmd/harness/internal/starter -update", shown)
			}
		}
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "contract.yaml")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := starter.Write("data", dir); err == nil || !strings.Contains(err.Error(), mine) {
		t.Error(err)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "agent.yaml")); !os.IsNotExist(err) {
		t.Errorf("half of it is written: %v", err)
	}
	if _, err := starter.Write("cooking", dir); err == nil || !strings.Contains(err.Error(), "coding, research, data") {
		t.Error(err)
	}
}

// The command that the contract of the coding example checks is there, and runs what the
// workspace has.
func TestTheScriptOfTheCodingExample(t *testing.T) {
	dir := t.TempDir()
	run := func() (out string, failed bool) {
		cmd := exec.Command("sh", "test.sh")
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		return string(said), err != nil
	}
	if _, err := starter.Write("coding", dir); err != nil {
		t.Fatal(err)
	}
	if out, failed := run(); !failed || out != "test.sh: no tests found: write the command that runs them into test.sh\n" {
		t.Errorf("%v %q", failed, out)
	}
	for name, content := range map[string]string{"go.mod": "module x\n", "x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, failed := run(); failed || !strings.HasPrefix(out, "ok ") {
		t.Errorf("%v %q", failed, out)
	}
	// A script of the workspace is kept.
	mine := t.TempDir()
	if err := os.WriteFile(filepath.Join(mine, "test.sh"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	paths, err := starter.Write("coding", mine)
	if err != nil || len(paths) != 2 {
		t.Fatal(paths, err)
	}
	if text, err := os.ReadFile(filepath.Join(mine, "test.sh")); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}
