package command

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newCommands returns Commands with folders of a test.
func newCommands(t *testing.T, c Config) *Commands {
	t.Helper()
	c.Dir, c.Data, c.Mark, c.Logger = t.TempDir(), t.TempDir(), func() string { return "test" }, slog.New(slog.DiscardHandler)
	return New(c)
}

// run runs a command line of a run in a folder, at a level.
func (c *Commands) run(t *testing.T, dir string, level harnessv1.SandboxLevel, line string) (Exit, string) {
	t.Helper()
	var output bytes.Buffer
	exit, err := c.Run(context.Background(), Request{Run: "run", Workspace: dir, Folder: folder(t, dir), Confinement: &harnessv1.Confinement{Level: level}}, process.Command{
		Line: line, Output: &output,
	})
	if err != nil {
		t.Fatal(err)
	}
	return exit, output.String()
}

// TestNothingRunsBelowTheLeastLevel, and the reason names the operator.
func TestNothingRunsBelowTheLeastLevel(t *testing.T) {
	t.Parallel()
	c, dir := newCommands(t, Config{Least: sandbox.Kernel}), t.TempDir()
	exit, _ := c.run(t, dir, sandbox.Off, "touch started")
	if !exit.Unconfined || !strings.Contains(exit.Error, "the operator of the tool host lets nothing run below kernel") {
		t.Errorf("got %+v", exit)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the command ran")
	}
}

// TestCommandsHaveTheEnvironmentOfTheirRun and its mark, also without a sandbox.
func TestCommandsHaveTheEnvironmentOfTheirRun(t *testing.T) {
	t.Parallel()
	c := newCommands(t, Config{Pass: []string{"OF"}, Environ: func(run string) []string { return []string{"PATH=" + os.Getenv("PATH"), "OF=" + run} }})
	exit, text := c.run(t, t.TempDir(), sandbox.Off, `echo "$OF $`+process.MarkVariable+`"; exit 3`)
	if text != "run test\n" || exit.Code != 3 || exit.Level != sandbox.Off || exit.Refused != nil {
		t.Errorf("got %+v, %q", exit, text)
	}
}

// TestAFolderOfTheHarnessIsNoReadableFolder: the problem names the field.
func TestAFolderOfTheHarnessIsNoReadableFolder(t *testing.T) {
	t.Parallel()
	c := newCommands(t, Config{})
	if _, support := c.Find(t.Context()); support.GetLevel() == sandbox.Off {
		t.Fatal("this machine cannot confine commands, which the test needs")
	}
	if p := c.Problem(t.Context(), t.TempDir(), nil); p != nil {
		t.Errorf("got %v", p)
	}
	p := c.Problem(t.Context(), t.TempDir(), &harnessv1.SandboxConfig{Read: []string{c.config.Data}})
	if p.GetField() != "sandbox.read[0]" || !strings.Contains(p.GetMessage(), "holds data of the harness") {
		t.Errorf("got %v", p)
	}
}

// folder opens the folder of a command.
func folder(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestModesAreCheckedAfterCommandsAtKernel: such a command runs as the same user, and changes the mode of a
// file that it cannot read; one at full does not see the file.
func TestModesAreCheckedAfterCommandsAtKernel(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen []os.FileMode
	c := newCommands(t, Config{Secrets: []string{secret}, AfterKernel: func() {
		if info, err := os.Stat(secret); err == nil {
			seen = append(seen, info.Mode().Perm())
		}
		_ = os.Chmod(secret, 0o600)
	}})
	_, support := c.Find(t.Context())
	for _, level := range []harnessv1.SandboxLevel{sandbox.Full, sandbox.Kernel} {
		if support.GetLevel() < level {
			t.Logf("this machine does not reach %s", sandbox.Name(level))
			continue
		}
		exit, output := c.run(t, t.TempDir(), level, "cat "+secret+"; chmod 644 "+secret)
		if strings.Contains(output, "secret\n") || exit.Unconfined {
			t.Errorf("%s: %+v, %q", sandbox.Name(level), exit, output)
		}
	}
	if support.GetLevel() >= sandbox.Kernel && (len(seen) != 1 || seen[0] != 0o644) {
		t.Errorf("seen after the command: %v", seen)
	}
}
