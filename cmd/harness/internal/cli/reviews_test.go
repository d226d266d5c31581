//go:build linux

package cli

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func TestReviewsAndContractQuestionsAtTheTerminal(t *testing.T) {
	f := serveFake(t)
	question := aQuestion(runstate.ContractCallID("colour", 9), `{"question":"Which colour?"}`)
	question.Tool = runstate.ContractQuestion
	answered(f, aReview("v1"), aReview("v2"), question)
	cmd := program(t, "run", "--server", f.address, "go")
	screen, keyboard := onTerminal(t, cmd)
	const letIt = "Let it run? [y] yes  [e] edit  [n] no: "
	screen.expect(t, letIt, 1)
	fmt.Fprint(keyboard, "a\n") // a review is of one call
	screen.expect(t, letIt, 2)
	fmt.Fprint(keyboard, "y\n")
	screen.expect(t, letIt, 3)
	fmt.Fprint(keyboard, "n too risky\n")
	screen.expect(t, "The contract asks:", 1)
	screen.expect(t, yourAnswer, 1)
	fmt.Fprint(keyboard, "blue\n")
	if code := exitCode(t, cmd); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	want := []proto.Message{
		&harnessv1.Approval{CallId: "v1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
		&harnessv1.Approval{CallId: "v2", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "too risky"},
		toolAnswer("contract:colour:9", "blue"),
	}
	if len(f.inputs) != len(want) {
		t.Fatalf("got %v", f.inputs)
	}
	for i := range want {
		if !proto.Equal(f.inputs[i], want[i]) {
			t.Errorf("got %v, want %v", f.inputs[i], want[i])
		}
	}
	if !strings.Contains(screen.String(), "A hook requests a review of run_command before it runs:") {
		t.Errorf("the screen shows %s", screen.String())
	}
}

func TestResumedRunClosesTheQuestionOfItsContract(t *testing.T) {
	f := serveFake(t)
	question := aQuestion(runstate.ContractCallID("colour", 9), `{"question":"Which colour?"}`)
	question.Tool = runstate.ContractQuestion
	f.behave(func(r *fakeRun) { r.waits(question) }, func(r *fakeRun, id string, _ proto.Message) {
		r.accept(id, "tool_answer")
		r.event(&harnessv1.Event{Event: &harnessv1.Event_SessionResume{SessionResume: &harnessv1.SessionResume{Cause: "answer"}}})
		r.done()
	})
	cmd := program(t, "run", "--server", f.address, "go")
	screen, _ := onTerminal(t, cmd)
	screen.expect(t, yourAnswer, 1)
	if got := call(t, nil, "", "answer", "r1", "blue", "--server", f.address); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	screen.expect(t, "answered elsewhere", 1)
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}
