package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// unprivileged is a user id without any rights; a test that runs as root uses it, since
// nothing can be hidden from root.
const unprivileged = 65534

// TestACommandCannotReadTheKeysOfItsHost: a command runs as the user of the process
// that started it, and still does not get at what that one was given.
func TestACommandCannotReadTheKeysOfItsHost(t *testing.T) {
	t.Parallel()
	program.Rely(t)
	const secret = "sk-not-for-commands-7f1d"
	dir := t.TempDir()
	open := func(path string) {
		if os.Getuid() == 0 {
			if err := os.Chown(path, unprivileged, unprivileged); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	workspace, data, home := filepath.Join(dir, "work"), filepath.Join(dir, "data"), filepath.Join(dir, "home")
	for _, d := range []string{workspace, data, home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		open(d)
	}
	program := filepath.Join(dir, "harness")
	binary, err := os.ReadFile(harness)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	script := write(t, dir, "script.yaml", `turns:
  - calls:
      - name: run_command
        arguments: {command: "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ 2>/dev/null; done > seen"}
  - {calls: [{name: work_complete, arguments: {summary: looked}}]}
`)
	open(script)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", "--data", data, "--workspace", workspace, "--model", "script:"+script, "--yolo", "Look.")
	cmd.Env, cmd.Dir = environment("OPENAI_API_KEY="+secret, "HOME="+home), workspace
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	seen, err := os.ReadFile(filepath.Join(workspace, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(seen), "PWD=") {
		t.Fatalf("the command read no environment at all, not even its own:\n%s", seen)
	}
	if strings.Contains(string(seen), secret) {
		t.Error("the command could read the key of the process that runs it")
	}
}
