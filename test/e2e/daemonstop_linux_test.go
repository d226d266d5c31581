package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/terminaltest"
)

// terminal is a terminal with a program.
type terminal struct {
	io.Writer // the keyboard
	cmd       *exec.Cmd
	mu        sync.Mutex
	screen    bytes.Buffer
}

// screenWriter appends to the screen of a terminal.
type screenWriter struct{ t *terminal }

// Write appends to the screen.
func (s *screenWriter) Write(p []byte) (int, error) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	return s.t.screen.Write(p)
}

// shown returns what the program has printed.
func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.String()
}

// onTerminal starts the binary on a terminal.
func onTerminal(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	master, slave := terminaltest.Open(t)
	x := &terminal{Writer: master, cmd: exec.Command(harness, args...)}
	x.cmd.Env, x.cmd.Dir = env, t.TempDir()
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&screenWriter{x}, master) // ends with EIO when the program has gone
	}()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		<-read
	})
	return x
}

// TestDaemonStopAsksWhileRunsWork: on a terminal daemon stop names the runs at work. Only a
// yes stops the process; the run can then be continued.
func TestDaemonStopAsksWhileRunsWork(t *testing.T) {
	t.Parallel()
	h, dir := newHousehold(t), t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"while ! [ -e go ]; do sleep 0.05; done\"}}]}\n"+
		"  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	run := start(t, h.env(), "run", "--workspace", dir, "--yolo", "--model", "script:"+script, "--run-id", "busy", "--output", "jsonl", "work")
	run.until(is("tool.call"))
	former := h.pid()
	for _, answer := range []string{"n", "", "no idea"} {
		x := onTerminal(t, h.env("TERM=xterm"), "daemon", "stop")
		eventually(t, "the question", func() bool { return strings.Contains(x.shown(), "Stop? [y/N] ") })
		if !strings.Contains(x.shown(), "busy at work") || !strings.Contains(x.shown(), "harness resume continues the run") {
			t.Errorf("the question:\n%s", x.shown())
		}
		fmt.Fprintln(x, answer)
		if err := x.cmd.Wait(); err == nil || h.pid() != former {
			t.Errorf("after %q: %v, process %d\n%s", answer, err, h.pid(), x.shown())
		}
		eventually(t, "the reply to "+answer, func() bool { return strings.Contains(x.shown(), "not stopped") })
	}
	x := onTerminal(t, h.env("TERM=xterm"), "daemon", "stop")
	eventually(t, "the question", func() bool { return strings.Contains(x.shown(), "Stop? [y/N] ") })
	fmt.Fprintln(x, "yes")
	write(t, dir, "go", "") // the command ends in the time that it has
	if err := x.cmd.Wait(); err != nil || h.pid() != 0 {
		t.Errorf("after yes: %v, process %d\n%s", err, h.pid(), x.shown())
	}
	if code, _, stderr := run.wait(); code != 4 && code != 0 {
		t.Errorf("the client of the run: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := start(t, h.env(), "resume", "busy").wait(); code != 0 && !strings.Contains(stderr, "has ended") {
		t.Errorf("resume: exit %d\n%s", code, stderr)
	}
}
