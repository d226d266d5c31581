package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Each line comes out whole and in the order of its stream, the last one also
// without an end, and one that is too long in pieces.
func TestLines(t *testing.T) {
	t.Parallel()
	const count = 300
	long := maxLine + 100
	loop := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do printf 'out %%s %%s\n' $i $i; printf 'err %%s %%s\n' $i $i >&2; i=$((i+1)); done`, count)
	r := launch(t, "a: "+loop+"\nbbb: "+loop+"; printf 'no end'\n"+
		fmt.Sprintf("long: head -c %d /dev/zero | tr '\\0' x; printf '\\r\\nshort\\n'\n", long))
	r.end(0)
	next := map[string]int{}
	var text strings.Builder
	for _, line := range r.said {
		if len(line) < 7 || line[5] != '|' && line[5] != '*' {
			t.Fatalf("%.40q: no padded name", line)
		}
		if line[5] == '*' {
			continue
		}
		name, rest := strings.TrimRight(line[:5], " "), line[7:]
		if name == "long" {
			text.WriteString(rest + "\n")
			continue
		}
		if rest == "no end" {
			next["no end"]++
			continue
		}
		stream := rest[:3]
		n := next[name+stream]
		if rest != fmt.Sprintf("%s %d %d", stream, n, n) {
			t.Fatalf("%q, want number %d", line, n)
		}
		next[name+stream]++
	}
	for _, stream := range []string{"aout", "aerr", "bbbout", "bbberr"} {
		if next[stream] != count {
			t.Errorf("%s: %d lines of %d", stream, next[stream], count)
		}
	}
	if next["no end"] != 1 {
		t.Error("the last line is missing")
	}
	if want := strings.Repeat("x", maxLine) + "\n" + strings.Repeat("x", 100) + "\nshort\n"; text.String() != want {
		t.Errorf("a long line came as %d bytes: %.30q", text.Len(), text.String())
	}
}

// What ends otherwise than with 0 is started again, after longer and longer.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	r := launch(t, "first: exec sleep 1000\nonce: echo made\nfails: exit 3\n")
	pid := r.pid("first * started, pid ")
	r.await("once  * is done")
	r.await("fails * ended: exit code 3; again in 400ms")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await("first * ended: signal 9 (killed); again in 200ms")
	again := r.pid("first * started again, pid ")
	if again == pid {
		t.Error("with the same pid")
	}
	r.await("fails * ended: exit code 3; again in 800ms")
	r.signal(syscall.SIGTERM)
	r.end(0)
	if !gone(again) {
		t.Error("the second life goes on")
	}
	if r.place("once  * started again") >= 0 {
		t.Error("what was done was started again")
	}
	if r.place("fails * ended: exit code 3; again in 200ms") < 0 {
		t.Error("the first pause was not 200ms")
	}
}

// The first of the file is asked to stop when all others have ended.
func TestStopsInOrder(t *testing.T) {
	t.Parallel()
	r := launch(t, "bus: echo up; exec sleep 1000\n"+
		"b: trap 'echo stopping; cat fifo; exit 0' TERM; echo up; while :; do sleep 0.1; done\n"+
		"c: echo up; exec sleep 1000\n")
	fifo := filepath.Join(r.cmd.Dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for up := 0; up < 3; up++ {
		for !strings.HasSuffix(mustNext(r), "| up") {
		}
	}
	r.signal(syscall.SIGINT)
	r.await("c   * stopped: signal 15 (terminated)")
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // once b reads it
	if err != nil {
		t.Fatal(err)
	}
	if r.place("bus * is asked") >= 0 {
		t.Error("the first was asked before the others had ended")
	}
	if _, err := w.WriteString("late\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	r.end(0)
	last := -1
	for _, line := range []string{
		"c   * is asked to stop", "b   * is asked to stop", "b   | stopping", "b   | late", "b   * stopped: exit code 0",
		"bus * is asked to stop", "bus * stopped: signal 15 (terminated)",
	} {
		at := r.place(line)
		if at <= last {
			t.Errorf("%q: line %d, behind %d", line, at, last)
		}
		last = at
	}
}

func mustNext(r *running) string {
	r.t.Helper()
	line, ok := r.next()
	if !ok {
		r.t.Fatal("ended")
	}
	return line
}

// What does not stop is killed, after the patience or by a second signal, and
// with it what it has forked.
func TestDoesNotStop(t *testing.T) {
	t.Parallel()
	const deaf = "bus: echo up; exec sleep 1000\ndeaf: trap '' TERM; sleep 1000 & echo forked $!; echo up; exec sleep 1000\n"
	for name, c := range map[string]struct {
		args   []string
		second syscall.Signal
		says   string
	}{
		"patience": {[]string{"-patience", "200ms"}, 0, "deaf * has not stopped in 200ms: killed"},
		"second":   {[]string{"-patience", "10m"}, syscall.SIGINT, "deaf * killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := launch(t, deaf, c.args...)
			pid, forked := r.pid("deaf * started, pid "), r.pid("deaf | forked ")
			r.await("deaf | up")
			r.signal(syscall.SIGINT)
			r.await("deaf * is asked to stop")
			if c.second != 0 {
				defer r.repeat(c.second)()
			}
			r.end(1)
			if r.place(c.says) < 0 {
				t.Errorf("does not say %q", c.says)
			}
			if !gone(pid) || !gone(forked) {
				t.Error("a process is left")
			}
		})
	}
}

// A process that is stopped hears that it is to end.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	r := launch(t, "a: echo up; exec sleep 1000\n", "-patience", "10m")
	pid := r.pid("a * started, pid ")
	r.await("a | up")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.signal(syscall.SIGTERM)
	r.signal(syscall.SIGINT) // the same key, not a second one
	r.end(0)
}

// What a process has forked ends with it, before its next life begins.
func TestForkedEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	r := launch(t, "a: sleep 1000 & echo forked $!; exec sleep 1000\n")
	pid, forked := r.pid("a * started, pid "), r.pid("a | forked ")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await("a * started again")
	if !gone(forked) {
		t.Error("a process of the first life is left in the second")
	}
	r.signal(syscall.SIGTERM)
	r.end(0)
}

// Nobody reads any more: it stops as if asked.
func TestOutputIsClosed(t *testing.T) {
	t.Parallel()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Procfile")
	if err := os.WriteFile(file, []byte("a: exec sleep 1000\nb: while echo x; do sleep 0.01; done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := runnerOf(file)
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	_ = out.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// One runner has a Procfile at a time.
func TestOneRunner(t *testing.T) {
	t.Parallel()
	r := launch(t, "a: echo up; exec sleep 1000\n")
	r.await("a | up")
	file := filepath.Join(r.cmd.Dir, "Procfile")
	cmd := runnerOf(file)
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 1 || string(out) != "procfile: "+file+" is being run already\n" {
		t.Errorf("a second one: %v, %q", cmd.ProcessState, out)
	}
	r.signal(syscall.SIGTERM)
	r.end(0)
}

// What cannot be run is said in one line.
func TestRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "Procfile")
	if err := os.WriteFile(file, []byte("a: echo\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		file + ":2: want NAME: COMMAND": {file},
		"no such file":                  {file + "x"},
		"usage: procfile":               {file, file},
	} {
		cmd := runnerOf(args...)
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%v: %v, %q", args, err, out)
		}
	}
}
