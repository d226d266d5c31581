package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asRunner makes the test binary the program itself, because a runner waits for
// every child of its process.
const asRunner = "PROCFILE_TEST_RUNNER"

// leaked is the exit code of a runner that has left goroutines behind.
const leaked = 99

func TestMain(m *testing.M) {
	if os.Getenv(asRunner) == "" {
		os.Exit(m.Run())
	}
	signals := subscribe()
	before := runtime.NumGoroutine()
	code := start(os.Args[1:], signals)
	// The runtime keeps a goroutine for signals; subscribe has started it. One that has
	// done its work may still be on its way out.
	for end := time.Now().Add(time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		runtime.Gosched()
	}
	if runtime.NumGoroutine() > before {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		code = leaked
	}
	os.Exit(code)
}

// patience bounds every wait of a test.
const patience = 60 * time.Second

// A running is a runner that a test started.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
	said  []string
}

// runnerOf is the program with arguments.
func runnerOf(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asRunner+"=1")
	return cmd
}

// launch runs a Procfile.
func launch(t *testing.T, procfile string, args ...string) *running {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Procfile")
	if err := os.WriteFile(file, []byte(procfile), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, cmd: runnerOf(append(args, file)...), lines: make(chan string, 1<<14)}
	r.cmd.Dir = filepath.Dir(file)
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(r.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			r.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			<-read
			_ = r.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("it said:\n%s", strings.Join(r.said, "\n"))
		}
	})
	return r
}

// next is the next line; ok is false at the end.
func (r *running) next() (line string, ok bool) {
	r.t.Helper()
	select {
	case line, ok = <-r.lines:
		if ok {
			r.said = append(r.said, line)
		}
		return line, ok
	case <-time.After(patience):
		r.t.Fatal("no line, and no end")
		return "", false
	}
}

// await waits for a line that begins so and returns the rest of it.
func (r *running) await(prefix string) string {
	r.t.Helper()
	for {
		line, ok := r.next()
		if !ok {
			r.t.Fatalf("ended without %q", prefix)
		}
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return rest
		}
	}
}

// pid waits for a line that begins so and returns the number behind it.
func (r *running) pid(prefix string) int {
	r.t.Helper()
	rest := r.await(prefix)
	number, _, _ := strings.Cut(rest, ":")
	pid, err := strconv.Atoi(number)
	if err != nil {
		r.t.Fatalf("%s%s: no pid", prefix, rest)
	}
	return pid
}

func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// repeat sends a signal again and again, until it has an effect.
func (r *running) repeat(s syscall.Signal) (stop func()) {
	quit, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for r.cmd.Process.Signal(s) == nil {
			select {
			case <-again.C:
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-stopped }
}

// end waits for the end and checks the exit code.
func (r *running) end(code int) {
	r.t.Helper()
	for {
		if _, ok := r.next(); !ok {
			break
		}
	}
	_ = r.cmd.Wait()
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.t.Errorf("exit code %d, want %d", got, code)
	}
}

// place is where a line stands in what was said, -1 when it was not.
func (r *running) place(prefix string) int {
	for i, line := range r.said {
		if strings.HasPrefix(line, prefix) {
			return i
		}
	}
	return -1
}

// eventuallyGone waits until a process has ended. Whoever is its parent then
// need not have taken notice.
func eventuallyGone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !gone(pid) {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func gone(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err) && runtime.GOOS == "linux"
	}
	return strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " Z")
}
