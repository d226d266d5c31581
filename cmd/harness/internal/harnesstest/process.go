//go:build linux

package harnesstest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/terminaltest"
)

// Program is this program as a process.
func Program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{"HARNESS_TEST_AS_PROGRAM=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "NO_COLOR=1"}
	return cmd
}

// Text collects what a process writes and waits for parts of it.
type Text struct {
	Mu      sync.Mutex
	Buf     bytes.Buffer
	Changed chan struct{}
}

func NewText() *Text { return &Text{Changed: make(chan struct{})} }

func (x *Text) Write(p []byte) (int, error) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	close(x.Changed)
	x.Changed = make(chan struct{})
	return x.Buf.Write(p)
}

func (x *Text) String() string {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	return x.Buf.String()
}

// Expect waits until part has been written n times.
func (x *Text) Expect(t *testing.T, part string, n int) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		x.Mu.Lock()
		got, changed := x.Buf.String(), x.Changed
		x.Mu.Unlock()
		if strings.Count(got, part) >= n {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%q did not come; got:\n%s", part, got)
		}
	}
}

func ExitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// OnTerminal starts the program on a separate terminal and returns its screen
// and keyboard.
func OnTerminal(t *testing.T, cmd *exec.Cmd) (screen *Text, keyboard *os.File) {
	t.Helper()
	master, slave := terminaltest.Open(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	screen = NewText()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(screen, master) // ends with EIO when the program has gone
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
	})
	return screen, master
}

// Capable makes the terminal of a program one that can move its cursor.
func Capable(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") }), "TERM=xterm-256color")
	return cmd
}
