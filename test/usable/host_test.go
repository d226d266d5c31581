//go:build linux

package usable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// toolchains are variables that name folders of toolchains, with where they are in a home
// without the variable.
var toolchains = map[string]string{"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "RBENV_ROOT": ".rbenv", "NVM_DIR": ".nvm", "VOLTA_HOME": ".volta"}

// elsewhere are variables that put caches and settings out of the home.
var elsewhere = []string{
	"GOPATH", "GOMODCACHE", "GOCACHE", "CARGO_HOME", "CARGO_TARGET_DIR", "npm_config_cache", "PIP_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "VIRTUAL_ENV",
	"GOFLAGS", "CGO_ENABLED", "CI", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTHONDONTWRITEBYTECODE",
}

// enterHome makes a folder the home of the user, with the user's toolchains and nothing else.
func enterHome(t testing.TB, home string) {
	t.Helper()
	settings := "[user]\n\tname = A Developer\n\temail = developer@example.com\n[init]\n\tdefaultBranch = main\n"
	if err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	for variable, relative := range toolchains {
		folder := filepath.Join(os.Getenv("HOME"), relative)
		if _, err := os.Stat(folder); err == nil && os.Getenv(variable) == "" {
			t.Setenv(variable, folder)
		}
	}
	for _, variable := range elsewhere {
		t.Setenv(variable, "") // restores it after the test
		_ = os.Unsetenv(variable)
	}
	t.Setenv("HOME", home)
}

// outcome is how a command ended.
type outcome struct {
	code   int
	output string
	took   time.Duration
}

// outside runs a command line as the user does.
func outside(t testing.TB, dir, line string, limit time.Duration) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	began := time.Now()
	output, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left
	}
	o := outcome{output: string(output), took: time.Since(began)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		o.code = 124 // as of timeout(1)
	case errors.As(err, &exit):
		if o.code = exit.ExitCode(); o.code < 0 {
			o.code = 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
		}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		t.Fatalf("%s: %v", line, err)
	}
	return o
}

type toolHost struct {
	server *toolhostserver.Server
	calls  int
}

// newToolHost starts a tool host with a folder for its data. It knows the hosts with addresses
// that are not public.
func newToolHost(t testing.TB, dir string, private []string) *toolHost {
	t.Helper()
	server, err := toolhostserver.New(toolhostserver.Config{Dir: dir, SandboxPrivateHosts: private})
	if err != nil {
		t.Fatal(err)
	}
	described, err := server.DescribeHost(t.Context(), &harnessv1.DescribeHostRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if support := described.GetSandbox(); support.GetLevel() < sandbox.Full {
		t.Fatalf("this machine does not have the level full, which the test needs: %s", support.GetReason())
	}
	return &toolHost{server: server}
}

// close ends the tool host, and removes its folder.
func (c *toolHost) close(t testing.TB, dir string) {
	t.Helper()
	if err := errors.Join(c.server.Close(context.Background()), remove(dir)); err != nil {
		t.Error(err)
	}
}

// run runs a command line at the level full as a call of run_command.
func (c *toolHost) run(t testing.TB, dir, line string, hosts []string, limit time.Duration) outcome {
	t.Helper()
	arguments, err := json.Marshal(map[string]any{"command": line, "timeout_seconds": int(limit.Seconds())})
	if err != nil {
		t.Fatal(err)
	}
	cfg := &harnessv1.SandboxConfig{}
	if len(hosts) > 0 {
		cfg.Network = &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, Hosts: hosts}
	}
	c.calls++
	began := time.Now()
	response, err := c.server.ExecuteTool(context.Background(), &harnessv1.ExecuteToolRequest{
		Namespace: "n", RunId: "r", CallId: fmt.Sprint(c.calls), FirstSequence: 1, Tool: tools.RunCommand, Arguments: string(arguments), Workspace: dir,
		Confinement: &harnessv1.Confinement{Level: sandbox.Full, Config: cfg},
	})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if response.GetSandboxLevel() != sandbox.Full || response.ExitCode == nil {
		t.Fatalf("%s: was not run at the level full: %s", line, response.GetResult())
	}
	return outcome{code: int(response.GetExitCode()), output: response.GetResult(), took: time.Since(began)}
}

// remove removes a folder, and what tools have made read-only in it, as the Go command does.
func remove(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// write writes the files of a project.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// missing returns the programs that are not installed here.
func missing(programs string) []string {
	var none []string
	for name := range strings.FieldsSeq(programs) {
		_, err := exec.LookPath(name)
		if err == nil && name == "cargo" { // rustup installs one that has no toolchain for a new user
			err = exec.Command(name, "--version").Run()
		}
		if err != nil {
			none = append(none, name)
		}
	}
	return none
}
