//go:build linux

package run_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func TestReviewsAndContractQuestionsAtTheTerminal(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	question := harnesstest.AQuestion(runstate.ContractCallID("colour", 9), `{"question":"Which colour?"}`)
	question.Tool = runstate.ContractQuestion
	answered(f, harnesstest.AReview("v1"), harnesstest.AReview("v2"), question)
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	const letIt = "Let it run? [y] yes  [e] edit  [n] no: "
	screen.Expect(t, letIt, 1)
	fmt.Fprint(keyboard, "a\n") // a review is of one call
	screen.Expect(t, letIt, 2)
	fmt.Fprint(keyboard, "y\n")
	screen.Expect(t, letIt, 3)
	fmt.Fprint(keyboard, "n too risky\n")
	screen.Expect(t, "The contract asks:", 1)
	screen.Expect(t, yourAnswer, 1)
	fmt.Fprint(keyboard, "blue\n")
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	want := []proto.Message{
		&harnessv1.Approval{CallId: "v1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
		&harnessv1.Approval{CallId: "v2", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "too risky"},
		harnesstest.ToolAnswer("contract:colour:9", "blue"),
	}
	if len(f.Inputs) != len(want) {
		t.Fatalf("got %v", f.Inputs)
	}
	for i := range want {
		if !proto.Equal(f.Inputs[i], want[i]) {
			t.Errorf("got %v, want %v", f.Inputs[i], want[i])
		}
	}
	if !strings.Contains(screen.String(), "A hook requests a review of run_command before it runs:") {
		t.Errorf("the screen shows %s", screen.String())
	}
}

func TestResumedRunClosesTheQuestionOfItsContract(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	question := harnesstest.AQuestion(runstate.ContractCallID("colour", 9), `{"question":"Which colour?"}`)
	question.Tool = runstate.ContractQuestion
	f.Behave(func(r *harnesstest.Run) { r.Waits(question) }, func(r *harnesstest.Run, id string, _ proto.Message) {
		r.Accept(id, "tool_answer")
		r.Event(&harnessv1.Event{Event: &harnessv1.Event_SessionResume{SessionResume: &harnessv1.SessionResume{Cause: "answer"}}})
		r.Done()
	})
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, _ := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, yourAnswer, 1)
	if got := harnesstest.Call(t, nil, "", "answer", "r1", "blue", "--server", f.Address); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	screen.Expect(t, "answered elsewhere", 1)
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}
