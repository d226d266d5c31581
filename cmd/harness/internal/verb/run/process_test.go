//go:build linux

package run_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// inTurn parks a run for one call after the other and ends it after the last.
func inTurn(f *harnesstest.Gateway, calls ...string) {
	f.Behave(func(r *harnesstest.Run) { r.Parked(calls[0]) }, func(r *harnesstest.Run, id string, input proto.Message) {
		if _, ok := input.(*harnessv1.Interrupt); ok {
			r.Interrupted(id)
			return
		}
		a := input.(*harnessv1.Approval)
		r.Accept(id, "approval")
		r.Event(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
			CallId: a.GetCallId(), Tool: "run_command", Decision: a.GetDecision(), Reason: a.GetReason(),
		}}})
		for i, call := range calls {
			if call == a.GetCallId() && i+1 < len(calls) {
				r.Parked(calls[i+1])
				return
			}
		}
		r.Done()
	})
}

func TestApprovalsAtTheTerminal(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	inTurn(f, "c1", "c2", "c3")
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	question := "[n] no: "
	screen.Expect(t, question, 1)
	fmt.Fprint(keyboard, "what\n")
	screen.Expect(t, question, 2)
	fmt.Fprint(keyboard, "y\n")
	screen.Expect(t, question, 3)
	fmt.Fprint(keyboard, "n\n")
	screen.Expect(t, "Reason for the model", 1)
	fmt.Fprint(keyboard, "too dangerous\n")
	screen.Expect(t, question, 4)
	fmt.Fprint(keyboard, "a\n*\n\n")
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	want := []*harnessv1.Approval{
		{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
		{CallId: "c2", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "too dangerous"},
		{CallId: "c3", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN},
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for i, w := range want {
		if i >= len(f.Inputs) || !proto.Equal(f.Inputs[i], w) {
			t.Fatalf("got %v, want %v", f.Inputs, want)
		}
	}
	if !strings.Contains(screen.String(), "command: make c1\r\n") {
		t.Errorf("the arguments are missing:\n%s", screen)
	}
}

func TestAnAnswerFromElsewhereClosesTheQuestion(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	inTurn(f, "c1")
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, _ := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[n] no: ", 1)
	if got := harnesstest.Call(t, nil, "", "approve", "r1", "--server", f.Address); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	screen.Expect(t, "answered elsewhere", 1)
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

func TestControlDAtTheQuestionLeavesTheRunParked(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	inTurn(f, "c1")
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[n] no: ", 1)
	fmt.Fprint(keyboard, "\x04")
	screen.Expect(t, "harness approve r1 c1", 1)
	if code := harnesstest.ExitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

func TestControlCAtTheQuestionKeepsIt(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	inTurn(f, "c1")
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[n] no: ", 1)
	fmt.Fprint(keyboard, "\x03")
	screen.Expect(t, "harness approve r1 c1", 1)
	if code := harnesstest.ExitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if len(f.Inputs) != 0 {
		t.Errorf("the run got %v", f.Inputs)
	}
}

// TestTerminationLeavesTheRun checks that a client that is ended sends nothing.
func TestTerminationLeavesTheRun(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Behave(func(r *harnesstest.Run) {
		r.Event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	}, func(_ *harnesstest.Run, _ string, input proto.Message) {
		t.Errorf("a client that was ended sends %v", input)
	})
	cmd, errs := harnesstest.Program(t, "run", "--server", f.Address, "go"), harnesstest.NewText()
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	errs.Expect(t, "turn 1/50", 1)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := harnesstest.ExitCode(t, cmd); code != 4 || !strings.Contains(errs.String(), "--server "+f.Address) {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
}

// TestInterrupts checks that a first interrupt stops the run, and a second one leaves it.
func TestInterrupts(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	took := make(chan struct{}, 2)
	var deaf atomic.Bool
	f.Behave(func(r *harnesstest.Run) {
		r.Event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	}, func(r *harnesstest.Run, id string, _ proto.Message) {
		if !deaf.Load() {
			r.Interrupted(id)
		}
		took <- struct{}{}
	})
	start := func() (*exec.Cmd, *harnesstest.Text) {
		cmd, errs := harnesstest.Program(t, "run", "--server", f.Address, "go"), harnesstest.NewText()
		cmd.Stderr = errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		errs.Expect(t, "turn 1/50", 1)
		return cmd, errs
	}
	send := func(cmd *exec.Cmd) {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	cmd, errs := start()
	send(cmd)
	if code := harnesstest.ExitCode(t, cmd); code != 4 || !strings.Contains(errs.String(), "harness resume r1 --server "+f.Address) {
		t.Errorf("exit code %d:\n%s", code, errs)
	}

	<-took
	deaf.Store(true) // no kill reaches the run: the second signal leaves it
	cmd, errs = start()
	send(cmd)
	errs.Expect(t, "a second signal leaves immediately", 1)
	<-took
	send(cmd)
	if code := harnesstest.ExitCode(t, cmd); code != 4 || !strings.Contains(errs.String(), "harness resume r2") {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
}

func TestASignalLeavesAWatchedRunAlone(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("r", "default", harnesstest.ASpec()).Event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	cmd, errs := harnesstest.Program(t, "watch", "--server", f.Address, "r"), harnesstest.NewText()
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	errs.Expect(t, "turn 1/50", 1)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := harnesstest.ExitCode(t, cmd); code != 4 || len(f.Inputs) != 0 {
		t.Errorf("exit code %d, inputs %v:\n%s", code, f.Inputs, errs)
	}
}

// TestACallOutsideTheSandboxIsShownWhole and can be allowed only once: its command is
// longer than what events carry, and its lines are shown as lines.
func TestACallOutsideTheSandboxIsShownWhole(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Blobs = map[string][]string{"d": {`{"command":"echo one\n`, `echo two","unconfined":"it needs the key"}`}}
	f.Behave(func(r *harnesstest.Run) {
		call := harnesstest.AnApproval("c1")
		call.OnlyOnce, call.Why = true, "it wants to run outside of the sandbox: it needs the key"
		call.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d", Size: 60, Preview: `{"command":"ec`}}}
		r.Waits(call)
	}, func(r *harnesstest.Run, id string, input proto.Message) {
		a := input.(*harnessv1.Approval)
		if a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE {
			t.Errorf("the answer is %v", a)
		}
		r.Accept(id, "approval")
		r.Event(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
			CallId: "c1", Tool: "run_command", Decision: a.GetDecision(),
		}}})
		r.Done()
	})
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "Let it run? [y] yes  [e] edit  [n] no: ", 1)
	_, _ = keyboard.Write([]byte("a\n"))
	screen.Expect(t, "Let it run? [y] yes  [e] edit  [n] no: ", 2)
	_, _ = keyboard.Write([]byte("y\n"))
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := seen(t, screen); !strings.Contains(got, "command:\n  │ echo one\n  │ echo two\n") || strings.Contains(got, "[a] for this run") {
		t.Errorf("%s", got)
	}
}
