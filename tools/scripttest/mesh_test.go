// Package scripttest tests the scripts of tools by running them.
package scripttest

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// mesh is a run of mesh.sh.
type mesh struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *bufio.Scanner
	lines []string // that were read
}

func startMesh(t *testing.T, procfile string) *mesh {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Procfile")
	write(t, file, procfile)
	m := &mesh{t: t, cmd: exec.CommandContext(t.Context(), "../mesh.sh", file)}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.cmd.Stderr = m.cmd.Stdout
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.out = bufio.NewScanner(out)
	return m
}

// await reads the output until it has read the line that number of times.
func (m *mesh) await(line string, times int) {
	m.t.Helper()
	for times > 0 && m.out.Scan() {
		m.lines = append(m.lines, m.out.Text())
		if m.out.Text() == line {
			times--
		}
	}
	if times > 0 {
		m.t.Fatalf("the output ended without %q:\n%s", line, strings.Join(m.lines, "\n"))
	}
}

// end reads the rest of the output and returns the exit code.
func (m *mesh) end() int {
	m.t.Helper()
	for m.out.Scan() {
		m.lines = append(m.lines, m.out.Text())
	}
	_ = m.cmd.Wait()
	return m.cmd.ProcessState.ExitCode()
}

// until is a command that prints started, and ended when it gets SIGTERM.
func until(started string) string {
	return "trap 'echo ended; exit 0' TERM; echo " + started + "; while :; do sleep 0.05; done\n"
}

func TestMeshStopsTheFirstProcessLast(t *testing.T) {
	m := startMesh(t, "# a comment\n\nbus: "+until("up")+"role: "+until("up")+"other: "+until("up"))
	for _, line := range []string{"bus | up", "role | up", "other | up"} {
		if !slices.Contains(m.lines, line) {
			m.await(line, 1)
		}
	}
	if err := m.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := m.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	bus := slices.Index(m.lines, "bus | ended")
	for _, line := range []string{"role | ended", "other | ended"} {
		if at := slices.Index(m.lines, line); at < 0 || bus < at {
			t.Errorf("want %q before the end of the bus, got\n%s", line, strings.Join(m.lines, "\n"))
		}
	}
}

func TestMeshRestartsWhatFails(t *testing.T) {
	m := startMesh(t, "bus: "+until("up")+"once: echo done; echo error >&2\nrole: echo up; exit 3\n")
	m.await("role | exit code 3", 2)
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := m.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, line := range []string{"once | done", "once | error", "once | exit code 0"} {
		if n := len(slices.DeleteFunc(slices.Clone(m.lines), func(l string) bool { return l != line })); n != 1 {
			t.Errorf("%q appears %d times in\n%s", line, n, strings.Join(m.lines, "\n"))
		}
	}
}

func TestMeshKillsOnTheSecondSignal(t *testing.T) {
	m := startMesh(t, "bus: "+until("up")+"deaf: trap 'echo no' TERM; echo up; while :; do sleep 0.05; done\n")
	m.await("deaf | up", 1)
	if err := m.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	m.await("deaf | no", 1)
	if err := m.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := m.end(); code != 1 {
		t.Errorf("exit code %d, want 1 as a process was killed", code)
	}
}

func TestMeshRefusesALineWithoutAName(t *testing.T) {
	m := startMesh(t, "bus: "+until("up")+"just words\n")
	code := m.end()
	if code != 1 || !strings.Contains(strings.Join(m.lines, "\n"), "expected NAME: COMMAND, not just words") {
		t.Errorf("exit code %d and\n%s", code, strings.Join(m.lines, "\n"))
	}
}
