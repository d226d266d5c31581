package demo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/demo"
)

// TestScriptFixesTheProgram: the test fails, each edit fits the file as the edits
// before it left it, and the test passes only after the last edit.
func TestScriptFixesTheProgram(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal(err)
	}
	place, err := demo.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(place.Script)
	if err != nil {
		t.Fatal(err)
	}
	var script struct {
		Turns []struct {
			Calls []struct {
				Name      string
				Arguments map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &script); err != nil {
		t.Fatal(err)
	}
	var passed []bool
	for _, turn := range script.Turns {
		for _, call := range turn.Calls {
			switch call.Name {
			case "edit_file":
				path := filepath.Join(place.Workspace, call.Arguments["path"])
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(string(text), call.Arguments["old"]); n != 1 {
					t.Fatalf("%q is %d times in %s", call.Arguments["old"], n, path)
				}
				fixed := strings.Replace(string(text), call.Arguments["old"], call.Arguments["new"], 1)
				if err := os.WriteFile(path, []byte(fixed), 0o644); err != nil {
					t.Fatal(err)
				}
			case "run_command":
				cmd := exec.Command("sh", "-c", call.Arguments["command"])
				cmd.Dir = place.Workspace
				cmd.Env = append(os.Environ(), "GOFLAGS=", "GOTOOLCHAIN=local", "GOWORK=off")
				out, err := cmd.CombinedOutput()
				t.Logf("%s", out)
				passed = append(passed, err == nil)
			}
		}
	}
	if len(passed) != 3 || passed[0] || passed[1] || !passed[2] {
		t.Errorf("the tests passed: %v, want only the last time", passed)
	}
}
