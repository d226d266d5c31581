//go:build linux

package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// answered parks a run for calls and removes each from the list when its answer comes.
func answered(f *fake, calls ...*harnessv1.PendingCall) {
	f.behave(func(r *fakeRun) { r.waits(calls...) }, func(r *fakeRun, id string, input proto.Message) {
		var answer string
		switch in := input.(type) {
		case *harnessv1.ToolAnswer:
			answer = in.GetCallId()
			r.accept(id, "tool_answer")
			r.event(&harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: answer, Tool: "ask_user", Result: in.GetResult()}}})
		case *harnessv1.Approval:
			answer = in.GetCallId()
			r.accept(id, "approval")
			r.event(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{CallId: answer, Decision: in.GetDecision()}}})
		}
		r.f.mu.Lock()
		calls = slices.DeleteFunc(slices.Clone(calls), func(p *harnessv1.PendingCall) bool { return p.GetCallId() == answer })
		left := calls
		r.f.mu.Unlock()
		if len(left) == 0 {
			r.done()
			return
		}
		r.waits(left...)
	})
}

const yourAnswer = "(Enter to skip): "

func TestQuestionsAtTheTerminal(t *testing.T) {
	for _, verb := range []string{"run", "watch"} {
		f := serveFake(t)
		answered(f, aQuestion("c1", colours), anApproval("c2"), aQuestion("c3", `{"question":"How\nmany?"}`))
		args := []string{"run", "--server", f.address, "go"}
		if verb == "watch" {
			f.started(f.add("r1", "default", aSpec()))
			args = []string{"watch", "--server", f.address, "r1"}
		}
		cmd := program(t, args...)
		screen, keyboard := onTerminal(t, cmd)
		screen.expect(t, yourAnswer, 1)
		fmt.Fprint(keyboard, "2\n")
		screen.expect(t, "[n] no: ", 1)
		fmt.Fprint(keyboard, "y\n")
		screen.expect(t, yourAnswer, 2)
		fmt.Fprint(keyboard, " about 7 \n")
		if code := exitCode(t, cmd); code != 0 {
			t.Fatalf("%s: exit code %d:\n%s", verb, code, screen)
		}
		want := []proto.Message{
			toolAnswer("c1", "dark blue"), &harnessv1.Approval{CallId: "c2", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}, toolAnswer("c3", "about 7"),
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, w := range want {
			if i >= len(f.inputs) || !proto.Equal(f.inputs[i], w) {
				t.Fatalf("%s: got %v, want %v", verb, f.inputs, want)
			}
		}
		for _, part := range []string{"  Which colour?\r\n  [1] red\r\n  [2] dark blue\r\n", "  How\r\n  many?\r\n"} {
			if !strings.Contains(screen.String(), part) {
				t.Errorf("%s: %q is missing:\n%q", verb, part, screen)
			}
		}
	}
}

func TestAnEmptyLineLeavesAQuestionWaiting(t *testing.T) {
	f := serveFake(t)
	answered(f, aQuestion("c1", colours), aQuestion("c2", colours), aClientCall("c3"))
	cmd := program(t, "run", "--server", f.address, "go")
	screen, keyboard := onTerminal(t, cmd)
	screen.expect(t, yourAnswer, 1)
	fmt.Fprint(keyboard, "\n")
	screen.expect(t, yourAnswer, 2)
	fmt.Fprint(keyboard, "red\n")
	// The run waits on, and the one that was left is not put again.
	if code := exitCode(t, cmd); code != 4 {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	screen.expect(t, "harness answer r1 c1 ANSWER --server", 1)
	screen.expect(t, "harness answer r1 c3 RESULT --server", 1)
	if got := screen.String(); strings.Count(got, yourAnswer) != 2 || strings.Contains(got, "harness answer r1 c2") {
		t.Errorf("%s", got)
	}

	// Where all are left, nothing is sent.
	cmd = program(t, "watch", "--server", f.address, "r1")
	screen, keyboard = onTerminal(t, cmd)
	screen.expect(t, yourAnswer, 1)
	fmt.Fprint(keyboard, "  \n")
	if code := exitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.inputs) != 1 || !proto.Equal(f.inputs[0], toolAnswer("c2", "red")) {
		t.Errorf("sent %v", f.inputs)
	}
}

func TestAnswerOfAnotherClientClosesTheQuestion(t *testing.T) {
	f := serveFake(t)
	answered(f, aQuestion("c1", colours), aQuestion("c2", colours))
	cmd := program(t, "run", "--server", f.address, "go")
	screen, keyboard := onTerminal(t, cmd)
	screen.expect(t, yourAnswer, 1)
	if got := call(t, nil, "", "answer", "r1", "c1", "red", "--server", f.address); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	screen.expect(t, "(answered elsewhere)", 1)
	screen.expect(t, yourAnswer, 2)
	fmt.Fprint(keyboard, "1\n")
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

// The gateway accepts one answer. The client that sends the second one reports this and
// continues to follow the run.
func TestAnAnswerThatComesSecond(t *testing.T) {
	for name, test := range map[string]struct {
		call           *harnessv1.PendingCall
		prompt, answer string
	}{
		"a question":  {aQuestion("c1", colours), yourAnswer, "red\n"},
		"an approval": {anApproval("c1"), "[n] no: ", "a\n*\n\n"},
	} {
		f := serveFake(t)
		answered(f, test.call)
		cmd := program(t, "run", "--server", f.address, "go")
		screen, keyboard := onTerminal(t, cmd)
		screen.expect(t, test.prompt, 1)
		f.mu.Lock()
		f.late = true
		r := f.runs["r1"]
		f.mu.Unlock()
		fmt.Fprint(keyboard, test.answer)
		screen.expect(t, "another client has already answered it; continuing", 1)
		// The next call of the tool is put again: the "always" has not been taken.
		f.mu.Lock()
		f.late = false
		f.mu.Unlock()
		r.accept("theirs", "approval")
		next := proto.CloneOf(test.call)
		next.CallId = "c2"
		answered(f, next)
		f.started(r)
		screen.expect(t, test.prompt, 2)
		fmt.Fprint(keyboard, test.answer)
		if code := exitCode(t, cmd); code != 0 || strings.Contains(screen.String(), "refused") {
			t.Errorf("%s: exit code %d:\n%s", name, code, screen)
		}
	}
}

// A client stops prompting for a call whose deadline has passed.
func TestAQuestionThatExpires(t *testing.T) {
	f := serveFake(t)
	answered(f, aQuestion("c1", colours))
	cmd := program(t, "run", "--server", f.address, "go")
	screen, _ := onTerminal(t, cmd)
	screen.expect(t, yourAnswer, 1)
	f.mu.Lock()
	r := f.runs["r1"]
	f.mu.Unlock()
	r.accept("timer-3", "timer_fired")
	r.event(&harnessv1.Event{Event: &harnessv1.Event_Repair{Repair: &harnessv1.Repaired{CallId: "c1", Tool: "ask_user", Turn: 1, Reason: "expired"}}})
	screen.expect(t, "(no longer asked: expired)", 1)
	r.done()
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

// aServerQuestion is a call whose server asks for a form and a visit.
func aServerQuestion(id string, round uint32) *harnessv1.PendingCall {
	call := aQuestion(id, "{}")
	call.Question = &harnessv1.ServerQuestion{Server: "trips", Round: round, Requests: []*harnessv1.ServerRequest{
		{Id: "pay", Message: content.Inline("Pay\x1b[2J here."), Url: content.Inline("https://pay.example.com/1")},
		{Id: "trip", Message: content.Inline("Where to?"), Schema: content.Inline(`{"type":"object","required":["city"],"properties":{
			"city":{"type":"string"},"nights":{"type":"integer"},"class":{"type":"string","enum":["first","second"]}}}`)},
	}}
	return call
}

// TestQuestionsOfServersAtTheTerminal: each field has a prompt, the words of the server control
// nothing, and a second question of the same call is put too.
func TestQuestionsOfServersAtTheTerminal(t *testing.T) {
	f := serveFake(t)
	var round uint32 = 1
	f.behave(func(r *fakeRun) { r.waits(aServerQuestion("c1", round)) }, func(r *fakeRun, id string, _ proto.Message) {
		r.accept(id, "tool_answer")
		if round++; round > 2 {
			r.done()
			return
		}
		r.waits(aServerQuestion("c1", round))
	})
	cmd := program(t, "run", "--server", f.address, "go")
	screen, keyboard := onTerminal(t, cmd)
	screen.expect(t, "done? (Enter to leave it open, /decline or /cancel): ", 1)
	fmt.Fprint(keyboard, "yes\n")
	screen.expect(t, "answer done, once you have visited the address", 1)
	fmt.Fprint(keyboard, "done\n")
	screen.expect(t, "city (needed): ", 1)
	fmt.Fprint(keyboard, "\n")
	screen.expect(t, "city (needed): ", 2)
	fmt.Fprint(keyboard, "Rome\n")
	screen.expect(t, "class (Enter to skip): ", 1)
	fmt.Fprint(keyboard, "2\n")
	screen.expect(t, "nights (Enter to skip): ", 1)
	fmt.Fprint(keyboard, "two\n")
	screen.expect(t, "nights: must be a number", 1)
	fmt.Fprint(keyboard, "\n")
	screen.expect(t, "done? (Enter to leave it open", 3)
	fmt.Fprint(keyboard, "/decline\n")
	if code := exitCode(t, cmd); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	first := toolAnswer("c1", `{"pay":"done","trip":{"city":"Rome","class":"second"}}`)
	first.Round = 1
	second := toolAnswer("c1", "")
	second.Round, second.Action = 2, harnessv1.AnswerAction_ANSWER_ACTION_DECLINE
	if len(f.inputs) != 2 || !proto.Equal(f.inputs[0], first) || !proto.Equal(f.inputs[1], second) {
		t.Errorf("sent %v", f.inputs)
	}
	for _, part := range []string{"The server trips asks, in its words:\r\n", "pay: Pay<U+001B>[2J here.", "visit https://pay.example.com/1 and answer done", "class (string, optional): one of first, second"} {
		if !strings.Contains(screen.String(), part) {
			t.Errorf("%q is missing:\n%q", part, screen)
		}
	}
}

// TestAnswersToServersFromTheCommandLine: flags are whole answers, and are for such questions alone.
func TestAnswersToServersFromTheCommandLine(t *testing.T) {
	f := serveFake(t)
	f.add("s", "default", aSpec()).waits(aServerQuestion("c1", 3))
	f.add("q", "default", aSpec()).waits(aQuestion("c1", colours))
	for _, c := range []struct {
		args []string
		want harnessv1.AnswerAction
		text string
		says string
	}{
		{[]string{"s", "--decline"}, harnessv1.AnswerAction_ANSWER_ACTION_DECLINE, "", ""},
		{[]string{"s", "c1", "--cancel"}, harnessv1.AnswerAction_ANSWER_ACTION_CANCEL, "", ""},
		{[]string{"s", `{"pay":null}`}, 0, `{"pay":null}`, ""},
		{[]string{"s", "--decline", "--cancel"}, 0, "", "complete answers"},
		{[]string{"s", "--decline", "c1", "Rome"}, 0, "", "complete answers"},
		{[]string{"s", "--decline", "Rome"}, 0, "", "does not wait for an answer"},
		{[]string{"q", "--decline"}, 0, "", "no question of a server"},
	} {
		f.mu.Lock()
		f.inputs = nil
		f.mu.Unlock()
		got := call(t, nil, "", append(append([]string{"answer"}, c.args...), "--no-resume", "--server", f.address)...)
		if c.says != "" {
			if got.code != 1 || !strings.Contains(got.err, c.says) {
				t.Errorf("%v: %+v", c.args, got)
			}
			continue
		}
		want := toolAnswer("c1", c.text)
		want.Round, want.Action = 3, c.want
		f.mu.Lock()
		if got.code != 0 || len(f.inputs) != 1 || !proto.Equal(f.inputs[0], want) {
			t.Errorf("%v: %+v, sent %v", c.args, got, f.inputs)
		}
		f.mu.Unlock()
	}
	got := call(t, nil, "", "show", "s", "--server", f.address)
	for _, part := range []string{"the server trips asks, in its words:", "visit https://pay.example.com/1", "--decline, or --cancel"} {
		if !strings.Contains(got.out, part) {
			t.Errorf("%q is missing:\n%s", part, got.out)
		}
	}
}
