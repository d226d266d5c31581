// Package e2e drives the shipped binary as its users do: real processes, real
// signals, real files, a real bus on disk.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/program"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// harness is the program, and configHome the folder of its configuration.
var harness, configHome string

func TestMain(m *testing.M) {
	storetest.InMemory()
	code := func() int {
		dir, err := os.MkdirTemp("", "harness-e2e")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		configHome = filepath.Join(dir, "config")
		if harness, err = program.Harness(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// These tests wait for takeovers far more than they compute.
		flag.Parse()
		if err := flag.Set("test.parallel", "8"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}()
	os.Exit(code)
}

// build builds the binary, with more flags of the linker.
func build(path string, linker ...string) error {
	cmd := exec.Command("go", "build", "-ldflags", strings.Join(linker, " "), "-o", path, "../../cmd/harness")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// deadline bounds one process; nothing here comes near it unless it hangs.
const deadline = 90 * time.Second

// process is a started harness.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan map[string]any // lines of stdout that are JSON
	done   chan struct{}

	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
	code   int
}

// environment is a clean one: no keys, no settings of the person who tests.
func environment(more ...string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(), "XDG_CONFIG_HOME=" + configHome}
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS", "GOPROXY"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}

// start starts the binary. Its stdout is read line by line.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startProgram(t, harness, env, args...)
}

// startProgram starts another build of the binary.
func startProgram(t *testing.T, path string, env []string, args ...string) *process {
	t.Helper()
	return startWith(t, path, env, nil, args...)
}

// startWith starts a build of the binary with an input; nil: an empty one.
func startWith(t *testing.T, path string, env []string, stdin io.Reader, args ...string) *process {
	t.Helper()
	program.Rely(t)
	if modeOf(t) == background && slices.Contains(args, "--data") {
		t.Fatal("--data: a test uses newHome, or is one of modes")
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	p := &process{t: t, cmd: exec.CommandContext(ctx, path, args...), events: make(chan map[string]any, 100_000), done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdin = env, stdin
	p.cmd.Dir = t.TempDir()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.stdout.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			event := map[string]any{}
			if json.Unmarshal(lines.Bytes(), &event) == nil {
				p.events <- event
			}
		}
	})
	reading.Go(func() {
		lines := bufio.NewScanner(errs)
		for lines.Scan() {
			p.mu.Lock()
			p.stderr.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
		}
	})
	go func() {
		reading.Wait()
		_ = p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.events)
		close(p.done)
		cancel()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("harness %s\nexit %d\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), p.code, tail(p.stdout.String()), tail(p.stderr.String()))
		}
	})
	return p
}

func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// wait returns when the process has ended.
func (p *process) wait() (code int, stdout, stderr string) {
	<-p.done
	return p.code, p.stdout.String(), p.stderr.String()
}

// until reads events up to the first that matches, and fails when there is none.
func (p *process) until(match func(map[string]any) bool) map[string]any {
	p.t.Helper()
	for e := range p.events {
		if match(e) {
			return e
		}
	}
	p.t.Fatal("the process ended before what was waited for")
	return nil
}

// is matches events of a type.
func is(kind string) func(map[string]any) bool {
	return func(e map[string]any) bool { return e["type"] == kind }
}

// finish runs the binary to its end.
func finish(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return start(t, environment(), args...).wait()
}

// object parses the one object that --output json prints.
func object(t *testing.T, stdout string) map[string]any {
	t.Helper()
	o := map[string]any{}
	if err := json.Unmarshal([]byte(stdout), &o); err != nil {
		t.Fatalf("stdout is not one JSON object: %v\n%s", err, stdout)
	}
	return o
}

// write puts a file into a folder and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
