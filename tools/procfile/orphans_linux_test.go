package main

import (
	"os"
	"syscall"
	"testing"
)

// A process that has left its group and its parent is killed in the end, though
// not before: it may belong to the work of another life.
func TestEscaped(t *testing.T) {
	t.Parallel()
	r := launch(t, "a: setsid sh -c 'echo escaped $$; exec sleep 1000' & sleep 1000 & wait\n")
	leader, escaped := r.pid("a * started, pid "), r.pid("a | escaped ")
	if err := syscall.Kill(leader, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := r.pid("a | escaped ")
	if gone(escaped) {
		t.Error("it was killed with the first life")
	}
	r.signal(syscall.SIGTERM)
	r.end(0)
	if !gone(escaped) || !gone(second) {
		t.Error("a process is left")
	}
}

// The kernel kills the processes of a runner that is killed.
func TestRunnerIsKilled(t *testing.T) {
	t.Parallel()
	r := launch(t, "a: exec sleep 1000\nb: exec sleep 1000\n")
	a, b := r.pid("a * started, pid "), r.pid("b * started, pid ")
	r.signal(syscall.SIGKILL)
	eventuallyGone(t, a)
	eventuallyGone(t, b)
	r.end(-1)
}

func TestTerminal(t *testing.T) {
	for path, want := range map[string]bool{os.DevNull: false, "/dev/ptmx": true, os.Args[0]: false} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := terminal(f); got != want {
			t.Errorf("%s is a terminal: %v", path, got)
		}
		_ = f.Close()
	}
}
