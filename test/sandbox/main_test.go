//go:build linux

package sandbox

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/test/sandbox/job"
	"github.com/harnessmesh/harnessmesh/test/sandbox/wayout"
)

var update = flag.Bool("update", false, "write what was measured")

// unprivileged is another user, as whom root tries the ways, too.
const unprivileged = 65534

// hostsOfUser is how many hosts a test starts as each user: their commands mostly wait.
const hostsOfUser = 3

// usersHere are those as whom the ways can be tried here.
func usersHere() []string {
	if os.Geteuid() == 0 {
		return []string{"user", "root"}
	}
	return []string{"user"}
}

// levels returns what this machine has of kernel and full.
func levels(t *testing.T) (abi int, full bool) {
	t.Helper()
	_, err := exec.LookPath("bwrap")
	return process.LandlockABI(), err == nil
}

// programs are built once.
var programs struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

// program builds a program of this test, and returns its path.
func program(t testing.TB, name, tags string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "harness-sandbox-")
		if err != nil {
			t.Fatal(err)
		}
		programs.dir = dir
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(programs.dir, name+tags)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-tags", tags, "-o", path, "./"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return path
}

// host is a running host.
type host struct {
	pid     int
	jobs    *json.Encoder
	results *json.Decoder
}

// startHost starts a host as a user. Its folder is below the system's temporary folder, where
// other users can get at it.
func startHost(t testing.TB, user, tags string) *host {
	t.Helper()
	return startHostIn(t, user, tags, func(string) {})
}

// startHostIn starts a host whose folder is prepared first.
func startHostIn(t testing.TB, user, tags string, prepare func(base string)) *host {
	t.Helper()
	path, attack := program(t, "host", tags), program(t, "attack", "")
	base, err := os.MkdirTemp(programs.dir, user)
	if err != nil {
		t.Fatal(err)
	}
	prepare(base)
	if err := os.Chmod(base, 0o755); err != nil { // the program attack must be reachable in it
		t.Fatal(err)
	}
	copyProgram(t, attack, filepath.Join(base, "attack"))
	home, err := os.MkdirTemp("/var/tmp", "harness-sandbox-home-") // of /tmp commands have another one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir = base
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "HARNESS_TEST_SECRET=" + wayout.Secret}
	if user == "user" && os.Geteuid() == 0 {
		for _, path := range []string{base, home, filepath.Join(base, "attack")} {
			if err := os.Chown(path, unprivileged, unprivileged); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	var errors strings.Builder
	cmd.Stderr = &errors
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the host as %s: %v %s", user, err, errors.String())
		}
		cancel()
	})
	return &host{pid: cmd.Process.Pid, jobs: json.NewEncoder(stdin), results: json.NewDecoder(stdout)}
}

func copyProgram(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

func (h *host) do(j job.Job) (job.Result, error) {
	var result job.Result
	if err := h.jobs.Encode(j); err != nil {
		return result, err
	}
	if err := h.results.Decode(&result); err != nil {
		return result, err
	}
	if result.Error != "" {
		return result, fmt.Errorf("at %s with Landlock %d: %s", j.Level, j.ABI, result.Error)
	}
	return result, nil
}
