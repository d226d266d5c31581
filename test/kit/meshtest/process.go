package meshtest

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// Process is a program that a test has started.
type Process struct {
	// Name identifies it in messages.
	Name string

	tb   testing.TB
	cmd  *exec.Cmd
	done chan struct{}

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced with each line

	over atomic.Bool // set before the end of the test kills it
}

// run starts a program and reads its stderr line by line.
func run(tb testing.TB, name string, env []string, path string, args ...string) *Process {
	tb.Helper()
	p := &Process{Name: name, tb: tb, cmd: exec.Command(path, args...), done: make(chan struct{}), more: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	errs, err := p.cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		lines := bufio.NewScanner(errs)
		for lines.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
		_ = p.cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(func() {
		p.over.Store(true)
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		<-p.done
		if tb.Failed() {
			tb.Logf("%s (%v) said:\n%s", p.Name, p.cmd.ProcessState, strings.Join(p.last(60), "\n"))
		}
	})
	return p
}

func (p *Process) last(n int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[max(0, len(p.lines)-n):]
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.tb.Fatalf("signal %s: %v", p.Name, err)
	}
}

// Kill kills the process and waits for its end.
func (p *Process) Kill() {
	p.tb.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Terminate sends SIGTERM and returns the exit code.
func (p *Process) Terminate() int {
	p.tb.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// Wait returns the exit code, -1 if a signal ended the process.
func (p *Process) Wait() int {
	p.tb.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(waittest.Patience):
		p.tb.Fatalf("%s does not end", p.Name)
		return -1
	}
}

// Line waits for a line of stderr with a prefix and returns the rest of it. ok is false
// if the process ended without one.
func (p *Process) Line(prefix string) (rest string, ok bool) {
	p.tb.Helper()
	deadline := time.After(waittest.Patience)
	for next, ended := 0, false; ; {
		p.mu.Lock()
		lines, more := p.lines, p.more
		p.mu.Unlock()
		for ; next < len(lines); next++ {
			if rest, ok := strings.CutPrefix(lines[next], prefix); ok {
				return rest, true
			}
		}
		if ended {
			return "", false
		}
		select {
		case <-more:
		case <-p.done:
			ended = true // again: the last lines
		case <-deadline:
			p.tb.Fatalf("%s did not say %q", p.Name, prefix)
		}
	}
}

// Stderr returns everything on stderr so far.
func (p *Process) Stderr() string { return strings.Join(p.last(1<<30), "\n") }

// environment returns a clean environment, without keys and settings of the user.
func environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(), "HARNESS_LOG_LEVEL=warn"}, more...)
}
