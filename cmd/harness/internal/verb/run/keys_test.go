//go:build linux

package run_test

import (
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const dropped = "keys typed while the run works are dropped"

// inShell is a shell that runs the program with arguments, tells the modes of its terminal, and reads a line.
// The script gets the program as "$@".
func inShell(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	program := harnesstest.Program(t, args...)
	cmd := exec.Command("sh", append([]string{"-c", script + "; stty -a; echo ready; IFS= read -r rest; echo \"rest=[$rest]\"", "sh", program.Path}, args...)...)
	cmd.Env = program.Env
	return cmd
}

// ends returns a gateway whose runs work until a channel is closed.
func ends(t *testing.T) (f *harnesstest.Gateway, end chan struct{}) {
	t.Helper()
	f, end = harnesstest.ServeGateway(t), make(chan struct{})
	f.Behave(func(r *harnesstest.Run) {
		r.Event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
		<-end
		r.Done()
	}, func(r *harnesstest.Run, id string, _ proto.Message) { r.Interrupted(id) })
	return f, end
}

// TestKeysAreNotLeftToTheShell types whole and open lines while a run works: the shell gets the keys after it.
func TestKeysAreNotLeftToTheShell(t *testing.T) {
	t.Parallel()
	f, end := ends(t)
	screen, keyboard := harnesstest.OnTerminal(t, inShell(t, `"$@"`, "run", "--server", f.Address, "go"))
	screen.Expect(t, "turn 1", 1)
	fmt.Fprint(keyboard, "rm -r x\n")
	screen.Expect(t, dropped, 1)
	fmt.Fprint(keyboard, "rm -r y\nrm")
	close(end)
	screen.Expect(t, "ready", 1)
	fmt.Fprint(keyboard, "end\n")
	screen.Expect(t, "rest=[end]", 1)
	got := screen.String()
	if strings.Count(got, dropped) != 1 || strings.Contains(got, "-icanon") || strings.Contains(got, "-echo ") || strings.Contains(got, "rm -r") {
		t.Errorf("%s", got)
	}
}

// TestTheTerminalIsRestored at signals that end the program, as far as a program can.
func TestTheTerminalIsRestored(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{"a quit": "\x1c", "an interrupt": "\x03", "a kill": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, end := ends(t)
			defer close(end)
			cmd := inShell(t, `trap : INT QUIT; "$@"`, "watch", "--server", f.Address, "r")
			f.Add("r", "default", harnesstest.ASpec()).Event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
			screen, keyboard := harnesstest.OnTerminal(t, cmd)
			screen.Expect(t, "turn 1", 1)
			fmt.Fprint(keyboard, "x")
			screen.Expect(t, dropped, 1)
			if how != "" {
				fmt.Fprint(keyboard, how)
			} else {
				killChildren(t, cmd.Process.Pid)
			}
			screen.Expect(t, "ready", 1)
			fmt.Fprint(keyboard, "end\n")
			screen.Expect(t, "rest=[end]", 1)
			if got := screen.String(); strings.Contains(got, "-icanon") || strings.Contains(got, "-echo ") {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestASuspendedProgramLeavesTheTerminalToTheShell: after Control-Z the shell has its terminal as before and reads
// its lines. In the foreground again, the program drops keys as before.
func TestASuspendedProgramLeavesTheTerminalToTheShell(t *testing.T) {
	t.Parallel()
	f, end := ends(t)
	screen, keyboard := harnesstest.OnTerminal(t, inShell(t, `set -m; "$@"; stty -a; echo stopped; IFS= read -r line; echo "line=[$line]"; fg`,
		"run", "--server", f.Address, "go"))
	screen.Expect(t, "turn 1", 1)
	fmt.Fprint(keyboard, "rm -r x\n")
	screen.Expect(t, dropped, 1)
	fmt.Fprint(keyboard, "\x1a")
	screen.Expect(t, "stopped", 1)
	fmt.Fprint(keyboard, "for the shell\n")
	screen.Expect(t, "line=[for the shell]", 1)
	waittest.Eventually(t, "the program has the terminal again", func() bool {
		canonical := true
		conn, err := keyboard.SyscallConn()
		if err == nil {
			err = conn.Control(func(fd uintptr) {
				if modes, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
					canonical = modes.Lflag&unix.ICANON != 0
				}
			})
		}
		return err == nil && !canonical
	})
	fmt.Fprint(keyboard, "rm -r y\n")
	close(end)
	screen.Expect(t, "ready", 1)
	fmt.Fprint(keyboard, "end\n")
	screen.Expect(t, "rest=[end]", 1)
	if got := screen.String(); strings.Contains(got, "-icanon") || strings.Contains(got, "-echo ") || strings.Contains(got, "rm -r") {
		t.Errorf("%s", got)
	}
}

// killChildren sends the children of a process SIGTERM.
func killChildren(t *testing.T, pid int) {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", fmt.Sprint(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range strings.Fields(string(out)) {
		var n int
		if _, err := fmt.Sscan(child, &n); err == nil {
			_ = syscall.Kill(n, syscall.SIGTERM)
		}
	}
}

// TestKeysOfOthersAreLeftAlone: with a pipe after it and in the background the program reads no keys.
func TestKeysOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a pipe":         `"$@" | cat`,
		"the background": `set -m; "$@" & wait; set +m`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, end := ends(t)
			screen, keyboard := harnesstest.OnTerminal(t, inShell(t, script, "run", "--server", f.Address, "go"))
			screen.Expect(t, "turn 1", 1)
			fmt.Fprint(keyboard, "for the shell\n")
			screen.Expect(t, "for the shell", 1) // its echo
			close(end)
			screen.Expect(t, "rest=[for the shell]", 1)
			if got := screen.String(); strings.Contains(got, dropped) {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestKeysBeforeAPromptAreNoAnswer: a prompt gets the keys after it.
func TestKeysBeforeAPromptAreNoAnswer(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	asks, answers := make(chan struct{}), atomic.Int32{}
	f.Behave(func(r *harnesstest.Run) {
		r.Event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
		<-asks
		r.Parked("c1")
	}, func(r *harnesstest.Run, id string, input proto.Message) {
		if a, ok := input.(*harnessv1.Approval); ok && a.GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY {
			answers.Add(1)
		}
		r.Accept(id, "approval")
		r.Done()
	})
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "turn 1", 1)
	fmt.Fprint(keyboard, "y\ny")
	screen.Expect(t, dropped, 1)
	close(asks)
	screen.Expect(t, "[n] no: ", 1)
	fmt.Fprint(keyboard, "n not now\n")
	if code := harnesstest.ExitCode(t, cmd); code != 0 || answers.Load() != 1 {
		t.Errorf("exit code %d, %d denials:\n%s", code, answers.Load(), screen)
	}
}
