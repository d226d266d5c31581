//go:build linux

package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// answered parks a run for calls and removes each from the list when its answer comes.
func answered(f *harnesstest.Gateway, calls ...*harnessv1.PendingCall) {
	f.Behave(func(r *harnesstest.Run) { r.Waits(calls...) }, func(r *harnesstest.Run, id string, input proto.Message) {
		var answer string
		switch in := input.(type) {
		case *harnessv1.ToolAnswer:
			answer = in.GetCallId()
			r.Accept(id, "tool_answer")
			r.Event(&harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: answer, Tool: "ask_user", Result: in.GetResult()}}})
		case *harnessv1.Approval:
			answer = in.GetCallId()
			r.Accept(id, "approval")
			r.Event(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{CallId: answer, Decision: in.GetDecision()}}})
		}
		r.F.Mu.Lock()
		calls = slices.DeleteFunc(slices.Clone(calls), func(p *harnessv1.PendingCall) bool { return p.GetCallId() == answer })
		left := calls
		r.F.Mu.Unlock()
		if len(left) == 0 {
			r.Done()
			return
		}
		r.Waits(left...)
	})
}

const yourAnswer = "(Enter to skip): "

func TestQuestionsAtTheTerminal(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"run", "watch"} {
		f := harnesstest.ServeGateway(t)
		answered(f, harnesstest.AQuestion("c1", harnesstest.Colours), harnesstest.AnApproval("c2"), harnesstest.AQuestion("c3", `{"question":"How\nmany?"}`))
		args := []string{"run", "--server", f.Address, "go"}
		if verb == "watch" {
			f.Started(f.Add("r1", "default", harnesstest.ASpec()))
			args = []string{"watch", "--server", f.Address, "r1"}
		}
		cmd := harnesstest.Program(t, args...)
		screen, keyboard := harnesstest.OnTerminal(t, cmd)
		screen.Expect(t, yourAnswer, 1)
		fmt.Fprint(keyboard, "2\n")
		screen.Expect(t, "[n] no: ", 1)
		fmt.Fprint(keyboard, "y\n")
		screen.Expect(t, yourAnswer, 2)
		fmt.Fprint(keyboard, " about 7 \n")
		if code := harnesstest.ExitCode(t, cmd); code != 0 {
			t.Fatalf("%s: exit code %d:\n%s", verb, code, screen)
		}
		want := []proto.Message{
			harnesstest.ToolAnswer("c1", "dark blue"), &harnessv1.Approval{CallId: "c2", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}, harnesstest.ToolAnswer("c3", "about 7"),
		}
		f.Mu.Lock()
		defer f.Mu.Unlock()
		for i, w := range want {
			if i >= len(f.Inputs) || !proto.Equal(f.Inputs[i], w) {
				t.Fatalf("%s: got %v, want %v", verb, f.Inputs, want)
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
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	answered(f, harnesstest.AQuestion("c1", harnesstest.Colours), harnesstest.AQuestion("c2", harnesstest.Colours), harnesstest.AClientCall("c3"))
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, yourAnswer, 1)
	fmt.Fprint(keyboard, "\n")
	screen.Expect(t, yourAnswer, 2)
	fmt.Fprint(keyboard, "red\n")
	// The run waits on, and the one that was left is not put again.
	if code := harnesstest.ExitCode(t, cmd); code != 4 {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	screen.Expect(t, "harness answer r1 c1 ANSWER --server", 1)
	screen.Expect(t, "harness answer r1 c3 RESULT --server", 1)
	if got := screen.String(); strings.Count(got, yourAnswer) != 2 || strings.Contains(got, "harness answer r1 c2") {
		t.Errorf("%s", got)
	}

	// Where all are left, nothing is sent.
	cmd = harnesstest.Program(t, "watch", "--server", f.Address, "r1")
	screen, keyboard = harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, yourAnswer, 1)
	fmt.Fprint(keyboard, "  \n")
	if code := harnesstest.ExitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if len(f.Inputs) != 1 || !proto.Equal(f.Inputs[0], harnesstest.ToolAnswer("c2", "red")) {
		t.Errorf("sent %v", f.Inputs)
	}
}

func TestAnswerOfAnotherClientClosesTheQuestion(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	answered(f, harnesstest.AQuestion("c1", harnesstest.Colours), harnesstest.AQuestion("c2", harnesstest.Colours))
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, yourAnswer, 1)
	if got := harnesstest.Call(t, nil, "", "answer", "r1", "c1", "red", "--server", f.Address); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	screen.Expect(t, "(answered elsewhere)", 1)
	screen.Expect(t, yourAnswer, 2)
	fmt.Fprint(keyboard, "1\n")
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

// The gateway accepts one answer. The client that sends the second one reports this and
// continues to follow the run.
func TestAnAnswerThatComesSecond(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call           *harnessv1.PendingCall
		prompt, answer string
	}{
		"a question":  {harnesstest.AQuestion("c1", harnesstest.Colours), yourAnswer, "red\n"},
		"an approval": {harnesstest.AnApproval("c1"), "[n] no: ", "a\n*\n\n"},
	} {
		f := harnesstest.ServeGateway(t)
		answered(f, test.call)
		cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
		screen, keyboard := harnesstest.OnTerminal(t, cmd)
		screen.Expect(t, test.prompt, 1)
		f.Mu.Lock()
		f.Late = true
		r := f.Runs["r1"]
		f.Mu.Unlock()
		fmt.Fprint(keyboard, test.answer)
		screen.Expect(t, "another client has already answered it; continuing", 1)
		// The next call of the tool is put again: the "always" has not been taken.
		f.Mu.Lock()
		f.Late = false
		f.Mu.Unlock()
		r.Accept("theirs", "approval")
		next := proto.CloneOf(test.call)
		next.CallId = "c2"
		answered(f, next)
		f.Started(r)
		screen.Expect(t, test.prompt, 2)
		fmt.Fprint(keyboard, test.answer)
		if code := harnesstest.ExitCode(t, cmd); code != 0 || strings.Contains(screen.String(), "refused") {
			t.Errorf("%s: exit code %d:\n%s", name, code, screen)
		}
	}
}

// A client stops prompting for a call whose deadline has passed.
func TestAQuestionThatExpires(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	answered(f, harnesstest.AQuestion("c1", harnesstest.Colours))
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, _ := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, yourAnswer, 1)
	f.Mu.Lock()
	r := f.Runs["r1"]
	f.Mu.Unlock()
	r.Accept("timer-3", "timer_fired")
	r.Event(&harnessv1.Event{Event: &harnessv1.Event_Repair{Repair: &harnessv1.Repaired{CallId: "c1", Tool: "ask_user", Turn: 1, Reason: "expired"}}})
	screen.Expect(t, "(no longer asked: expired)", 1)
	r.Done()
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

// aServerQuestion is a call whose server asks for a form and a visit.
func aServerQuestion(id string, round uint32) *harnessv1.PendingCall {
	call := harnesstest.AQuestion(id, "{}")
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
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	var round uint32 = 1
	f.Behave(func(r *harnesstest.Run) { r.Waits(aServerQuestion("c1", round)) }, func(r *harnesstest.Run, id string, _ proto.Message) {
		r.Accept(id, "tool_answer")
		if round++; round > 2 {
			r.Done()
			return
		}
		r.Waits(aServerQuestion("c1", round))
	})
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "done? (Enter to leave it open, /decline or /cancel): ", 1)
	fmt.Fprint(keyboard, "yes\n")
	screen.Expect(t, "answer done, once you have visited the address", 1)
	fmt.Fprint(keyboard, "done\n")
	screen.Expect(t, "city (needed): ", 1)
	fmt.Fprint(keyboard, "\n")
	screen.Expect(t, "city (needed): ", 2)
	fmt.Fprint(keyboard, "Rome\n")
	screen.Expect(t, "class (Enter to skip): ", 1)
	fmt.Fprint(keyboard, "2\n")
	screen.Expect(t, "nights (Enter to skip): ", 1)
	fmt.Fprint(keyboard, "two\n")
	screen.Expect(t, "nights: must be a number", 1)
	fmt.Fprint(keyboard, "\n")
	screen.Expect(t, "done? (Enter to leave it open", 3)
	fmt.Fprint(keyboard, "/decline\n")
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	first := harnesstest.ToolAnswer("c1", `{"pay":"done","trip":{"city":"Rome","class":"second"}}`)
	first.Round = 1
	second := harnesstest.ToolAnswer("c1", "")
	second.Round, second.Action = 2, harnessv1.AnswerAction_ANSWER_ACTION_DECLINE
	if len(f.Inputs) != 2 || !proto.Equal(f.Inputs[0], first) || !proto.Equal(f.Inputs[1], second) {
		t.Errorf("sent %v", f.Inputs)
	}
	for _, part := range []string{"The server trips asks, in its words:\r\n", "pay: Pay<U+001B>[2J here.", "visit https://pay.example.com/1 and answer done", "class (string, optional): one of first, second"} {
		if !strings.Contains(screen.String(), part) {
			t.Errorf("%q is missing:\n%q", part, screen)
		}
	}
}

// TestAnswersToServersFromTheCommandLine: flags are whole answers, and are for such questions alone.
func TestAnswersToServersFromTheCommandLine(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("s", "default", harnesstest.ASpec()).Waits(aServerQuestion("c1", 3))
	f.Add("q", "default", harnesstest.ASpec()).Waits(harnesstest.AQuestion("c1", harnesstest.Colours))
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
		f.Mu.Lock()
		f.Inputs = nil
		f.Mu.Unlock()
		got := harnesstest.Call(t, nil, "", append(append([]string{"answer"}, c.args...), "--no-resume", "--server", f.Address)...)
		if c.says != "" {
			if got.Code != 1 || !strings.Contains(got.Err, c.says) {
				t.Errorf("%v: %+v", c.args, got)
			}
			continue
		}
		want := harnesstest.ToolAnswer("c1", c.text)
		want.Round, want.Action = 3, c.want
		f.Mu.Lock()
		if got.Code != 0 || len(f.Inputs) != 1 || !proto.Equal(f.Inputs[0], want) {
			t.Errorf("%v: %+v, sent %v", c.args, got, f.Inputs)
		}
		f.Mu.Unlock()
	}
	got := harnesstest.Call(t, nil, "", "show", "s", "--server", f.Address)
	for _, part := range []string{"the server trips asks, in its words:", "visit https://pay.example.com/1", "--decline, or --cancel"} {
		if !strings.Contains(got.Out, part) {
			t.Errorf("%q is missing:\n%s", part, got.Out)
		}
	}
}
