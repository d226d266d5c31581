//go:build linux

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// Each shell loads its script, completes a verb, a flag with its value, an id and a file on a
// terminal, and runs the command.
func TestShellsComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	harnesstest.AddWideRuns(f)
	for _, shell := range []struct {
		name, load string
		args       []string
	}{
		{"bash", "source <(harness completion bash)", []string{"--norc", "--noprofile", "-i"}},
		{"zsh", "autoload -U compinit; compinit -u -D; source <(harness completion zsh)", []string{"-f", "-i"}},
		{"fish", "harness completion fish | source", []string{"--no-config", "-i"}},
	} {
		t.Run(shell.name, func(t *testing.T) {
			path, err := exec.LookPath(shell.name)
			if err != nil {
				if shell.name == "bash" {
					t.Fatal(err)
				}
				t.Skipf("the completion for %s was not tried: it is not installed", shell.name)
			}
			dir := asHarness(t)
			script := filepath.Join(dir, "script")
			if err := os.WriteFile(script, []byte(harnesstest.Call(t, nil, "", "completion", shell.name).Out), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(path, "-n", script).CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%v: %s", err, out)
			}
			cmd := exec.Command(path, shell.args...)
			cmd.Dir = t.TempDir()
			if err := os.WriteFile(filepath.Join(cmd.Dir, "agent file.yaml"), []byte("name: x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd.Env = []string{
				"HARNESS_TEST_AS_PROGRAM=1", "HOME=" + t.TempDir(), "PATH=" + dir + ":" + os.Getenv("PATH"), "TERM=dumb", "LANG=C.UTF-8", "PS1=> ",
				"HARNESS_SERVER=" + f.Address,
			}
			screen, keyboard := harnesstest.OnTerminal(t, cmd)
			typed := func(keys, want string) {
				t.Helper()
				_, _ = keyboard.Write([]byte(keys))
				screen.Expect(t, want, 1)
			}
			typed(shell.load+" && echo loa''ded\r", "loaded")
			typed("harness vers\t\r", "schema ")
			typed("harness show --outp\tjs\tr-b\t\r", `"run_id":"r-bbbb2345"`)
			typed("harness list --limit 1 --output=js\t\r", `"runs":[`)
			typed("harness agent check agent\t\r", "agent file.yaml: OK")
			_, _ = keyboard.Write([]byte("exit\r"))
			if code := harnesstest.ExitCode(t, cmd); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if t.Failed() {
				t.Log(strings.ToValidUTF8(screen.String(), "?"))
			}
		})
	}
}
