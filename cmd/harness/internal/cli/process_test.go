//go:build linux

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// program is this program as a process.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{"HARNESS_TEST_AS_PROGRAM=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "NO_COLOR=1"}
	return cmd
}

// text collects what a process writes and waits for parts of it.
type text struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func newText() *text { return &text{changed: make(chan struct{})} }

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	close(x.changed)
	x.changed = make(chan struct{})
	return x.buf.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.String()
}

// expect waits until part has been written n times.
func (x *text) expect(t *testing.T, part string, n int) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		x.mu.Lock()
		got, changed := x.buf.String(), x.changed
		x.mu.Unlock()
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

func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// onTerminal starts the program on a separate terminal and returns its screen
// and keyboard.
func onTerminal(t *testing.T, cmd *exec.Cmd) (screen *text, keyboard io.Writer) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	screen = newText()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(screen, master) // ends with EIO when the program has gone
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		master.Close()
	})
	return screen, master
}

// inTurn parks a run for one call after the other and ends it after the last.
func inTurn(f *fake, calls ...string) {
	f.behave(func(r *fakeRun) { r.parked(calls[0]) }, func(r *fakeRun, id string, input proto.Message) {
		if _, ok := input.(*harnessv1.Interrupt); ok {
			r.interrupted(id)
			return
		}
		a := input.(*harnessv1.Approval)
		r.accept(id, "approval")
		r.event(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
			CallId: a.GetCallId(), Tool: "run_command", Decision: a.GetDecision(), Reason: a.GetReason(),
		}}})
		for i, call := range calls {
			if call == a.GetCallId() && i+1 < len(calls) {
				r.parked(calls[i+1])
				return
			}
		}
		r.done()
	})
}

func TestApprovalsAtTheTerminal(t *testing.T) {
	f := serveFake(t)
	inTurn(f, "c1", "c2", "c3")
	cmd := program(t, "run", "--server", f.address, "go")
	screen, keyboard := onTerminal(t, cmd)
	question := "[n] no: "
	screen.expect(t, question, 1)
	fmt.Fprint(keyboard, "what\n")
	screen.expect(t, question, 2)
	fmt.Fprint(keyboard, "y\n")
	screen.expect(t, question, 3)
	fmt.Fprint(keyboard, "n\n")
	screen.expect(t, "Reason for the model", 1)
	fmt.Fprint(keyboard, "too dangerous\n")
	screen.expect(t, question, 4)
	fmt.Fprint(keyboard, "a\n*\n\n")
	if code := exitCode(t, cmd); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	want := []*harnessv1.Approval{
		{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
		{CallId: "c2", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "too dangerous"},
		{CallId: "c3", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, w := range want {
		if i >= len(f.inputs) || !proto.Equal(f.inputs[i], w) {
			t.Fatalf("got %v, want %v", f.inputs, want)
		}
	}
	if !strings.Contains(screen.String(), "command: make c1\r\n") {
		t.Errorf("the arguments are missing:\n%s", screen)
	}
}

func TestAnAnswerFromElsewhereClosesTheQuestion(t *testing.T) {
	f := serveFake(t)
	inTurn(f, "c1")
	cmd := program(t, "run", "--server", f.address, "go")
	screen, _ := onTerminal(t, cmd)
	screen.expect(t, "[n] no: ", 1)
	if got := call(t, nil, "", "approve", "r1", "--server", f.address); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	screen.expect(t, "answered elsewhere", 1)
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

func TestControlDAtTheQuestionLeavesTheRunParked(t *testing.T) {
	f := serveFake(t)
	inTurn(f, "c1")
	cmd := program(t, "run", "--server", f.address, "go")
	screen, keyboard := onTerminal(t, cmd)
	screen.expect(t, "[n] no: ", 1)
	fmt.Fprint(keyboard, "\x04")
	screen.expect(t, "harness approve r1 c1", 1)
	if code := exitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

func TestControlCAtTheQuestionKeepsIt(t *testing.T) {
	f := serveFake(t)
	inTurn(f, "c1")
	cmd := program(t, "run", "--server", f.address, "go")
	screen, keyboard := onTerminal(t, cmd)
	screen.expect(t, "[n] no: ", 1)
	fmt.Fprint(keyboard, "\x03")
	screen.expect(t, "harness approve r1 c1", 1)
	if code := exitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.inputs) != 0 {
		t.Errorf("the run got %v", f.inputs)
	}
}

// TestTerminationLeavesTheRun checks that a client that is ended sends nothing.
func TestTerminationLeavesTheRun(t *testing.T) {
	f := serveFake(t)
	f.behave(func(r *fakeRun) {
		r.event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	}, func(_ *fakeRun, _ string, input proto.Message) { t.Errorf("a client that was ended sends %v", input) })
	cmd, errs := program(t, "run", "--server", f.address, "go"), newText()
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	errs.expect(t, "turn 1/50", 1)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd); code != 4 || !strings.Contains(errs.String(), "--server "+f.address) {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
}

// TestInterrupts checks that a first interrupt stops the run, and a second one leaves it.
func TestInterrupts(t *testing.T) {
	f := serveFake(t)
	took := make(chan struct{}, 2)
	var deaf atomic.Bool
	f.behave(func(r *fakeRun) {
		r.event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	}, func(r *fakeRun, id string, _ proto.Message) {
		if !deaf.Load() {
			r.interrupted(id)
		}
		took <- struct{}{}
	})
	start := func() (*exec.Cmd, *text) {
		cmd, errs := program(t, "run", "--server", f.address, "go"), newText()
		cmd.Stderr = errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		errs.expect(t, "turn 1/50", 1)
		return cmd, errs
	}
	send := func(cmd *exec.Cmd) {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	cmd, errs := start()
	send(cmd)
	if code := exitCode(t, cmd); code != 4 || !strings.Contains(errs.String(), "harness resume r1 --server "+f.address) {
		t.Errorf("exit code %d:\n%s", code, errs)
	}

	<-took
	deaf.Store(true) // no kill reaches the run: the second signal leaves it
	cmd, errs = start()
	send(cmd)
	errs.expect(t, "a second signal leaves immediately", 1)
	<-took
	send(cmd)
	if code := exitCode(t, cmd); code != 4 || !strings.Contains(errs.String(), "harness resume r2") {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
}

func TestASignalLeavesAWatchedRunAlone(t *testing.T) {
	f := serveFake(t)
	f.add("r", "default", aSpec()).event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	cmd, errs := program(t, "watch", "--server", f.address, "r"), newText()
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	errs.expect(t, "turn 1/50", 1)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd); code != 4 || len(f.inputs) != 0 {
		t.Errorf("exit code %d, inputs %v:\n%s", code, f.inputs, errs)
	}
}

// TestACallOutsideTheSandboxIsShownWhole and can be allowed only once: its command is
// longer than what events carry, and its lines are shown as lines.
func TestACallOutsideTheSandboxIsShownWhole(t *testing.T) {
	f := serveFake(t)
	f.blobs = map[string][]string{"d": {`{"command":"echo one\n`, `echo two","unconfined":"it needs the key"}`}}
	f.behave(func(r *fakeRun) {
		call := anApproval("c1")
		call.OnlyOnce, call.Why = true, "it wants to run outside of the sandbox: it needs the key"
		call.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d", Size: 60, Preview: `{"command":"ec`}}}
		r.waits(call)
	}, func(r *fakeRun, id string, input proto.Message) {
		a := input.(*harnessv1.Approval)
		if a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE {
			t.Errorf("the answer is %v", a)
		}
		r.accept(id, "approval")
		r.event(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
			CallId: "c1", Tool: "run_command", Decision: a.GetDecision(),
		}}})
		r.done()
	})
	cmd := program(t, "run", "--server", f.address, "go")
	screen, keyboard := onTerminal(t, cmd)
	screen.expect(t, "Let it run? [y] yes  [e] edit  [n] no: ", 1)
	_, _ = keyboard.Write([]byte("a\n"))
	screen.expect(t, "Let it run? [y] yes  [e] edit  [n] no: ", 2)
	_, _ = keyboard.Write([]byte("y\n"))
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := seen(t, screen); !strings.Contains(got, "command:\n  │ echo one\n  │ echo two\n") || strings.Contains(got, "[a] for this run") {
		t.Errorf("%s", got)
	}
}
