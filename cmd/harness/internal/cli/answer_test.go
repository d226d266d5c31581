package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

const colours = `{"question":"Which colour?","options":["red","dark blue"]}`

func toolAnswer(call, text string) *harnessv1.ToolAnswer {
	return &harnessv1.ToolAnswer{CallId: call, Result: content.Inline(text)}
}

func TestAnswer(t *testing.T) {
	f := serveFake(t)
	f.add("q", "default", aSpec()).waits(aQuestion("c1", colours))
	f.add("two", "default", aSpec()).waits(anApproval("c0"), aQuestion("c1", colours), aClientCall("c2"))
	f.add("running", "default", aSpec())
	file := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(file, []byte("{\"state\": \"sent\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	failed := toolAnswer("c2", "no such order")
	failed.IsError = true
	for _, test := range []struct {
		stdin string
		args  []string
		want  *harnessv1.ToolAnswer
	}{
		{"", []string{"q", "dark", "green"}, toolAnswer("c1", "dark green")},
		{"", []string{"q", "c1", "red"}, toolAnswer("c1", "red")},
		{"", []string{"q", "--call", "c1", "c1", "red"}, toolAnswer("c1", "c1 red")},
		{"from\nstdin\n", []string{"q", "-"}, toolAnswer("c1", "from\nstdin")},
		{"", []string{"two", "c2", "12"}, toolAnswer("c2", "12")},
		{"", []string{"two", "c2", "--error", "no such", "order"}, failed},
		{"", []string{"two", "--error", "c2", "no such", "order"}, failed},
		{"", []string{"two", "c2", "--file", file}, toolAnswer("c2", `{"state": "sent"}`)},
		{"", []string{"q", "--file", file}, toolAnswer("c1", `{"state": "sent"}`)},
		{"", []string{"two", "c2", ""}, toolAnswer("c2", "")},
		{"", []string{"q", "--", "--error"}, toolAnswer("c1", "--error")},
		// A call that is announced and not waiting yet: the gateway knows.
		{"", []string{"running", "c9", "early"}, toolAnswer("c9", "early")},
		{"", []string{"running", "c9", "--file", file}, toolAnswer("c9", `{"state": "sent"}`)},
		{"", []string{"q", "--call", "c9", "early"}, toolAnswer("c9", "early")},
	} {
		got := call(t, nil, test.stdin, append([]string{"answer", "--server", f.address}, test.args...)...)
		if got.code != 0 || got.out != "" || !strings.Contains(got.err, "the answer to "+test.want.GetCallId()+" is stored") {
			t.Errorf("%q: %+v", test.args, got)
		}
		if sent := f.inputs[len(f.inputs)-1]; !proto.Equal(sent, test.want) {
			t.Errorf("%q sent %v, want %v", test.args, sent, test.want)
		}
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	f := serveFake(t)
	f.add("q", "default", aSpec()).waits(aQuestion("c1", colours))
	f.add("two", "default", aSpec()).waits(aQuestion("c 1", colours), aClientCall("c2"))
	f.add("ask", "default", aSpec()).waits(anApproval("c0"))
	f.add("none", "default", aSpec()).done()
	f.runs["q"].state = &harnessv1.Snapshot{AnsweredCalls: []uint64{runlog.HashID("c0")}}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"answer", "q"}, "missing TEXT"},
		{[]string{"answer", "q", "c1"}, "missing TEXT: c1 is the call"},
		{[]string{"answer", "q", "--call", "c1"}, "missing TEXT"},
		{[]string{"answer", "q", " "}, "the answer is empty"},
		{[]string{"answer", "q", "-"}, "the answer is empty"},
		{[]string{"answer", "q", "--file", empty}, "the answer is empty"},
		{[]string{"answer", "q", "--file", empty + "no"}, "--file"},
		{[]string{"answer", "q", "red", "--file", empty}, `call "red" does not wait`},
		{[]string{"answer", "q", "c1", "red", "--file", empty}, "TEXT and --file are mutually exclusive"},
		{[]string{"answer", "q", "c0", "blue"}, `call "c0" already has an answer`},
		{[]string{"answer", "two", "red"}, `2 calls of run two wait for an answer, so name the CALL: ["c 1" "c2"]`},
		{[]string{"answer", "none", "red"}, "run none waits for no answer"},
		{[]string{"answer", "gone", "red"}, "not found"},
		{[]string{"answer", "a b", "red"}, "RUN"},
		{[]string{"answer", "ask", "yes"}, "call c0 of run ask waits for an approval, not for an answer: harness approve ask c0 --server " + f.address},
		{[]string{"answer", "ask", "c0", "yes"}, "harness approve ask c0"},
		{[]string{"approve", "q"}, "call c1 of run q waits for an answer, not for an approval: harness answer q c1 ANSWER"},
		{[]string{"approve", "q", "c1"}, "harness answer q c1 ANSWER"},
		{[]string{"approve", "two", "c2"}, "harness answer two c2 RESULT"},
	} {
		got := call(t, nil, "", append(test.args, "--server", f.address)...)
		if got.code != 1 || got.out != "" || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, test.want) {
			t.Errorf("%q: %+v, want %q", test.args, got, test.want)
		}
	}
	if len(f.inputs) != 0 {
		t.Errorf("sent %v", f.inputs)
	}
	f.mu.Lock()
	f.late = true
	f.mu.Unlock()
	if got := call(t, nil, "", "answer", "q", "red", "--server", f.address); got.code != 1 || !strings.Contains(got.err, "already has an answer") {
		t.Errorf("a second answer: %+v", got)
	}
}

func TestDelete(t *testing.T) {
	f := serveFake(t)
	f.add("r", "default", aSpec()).done()
	f.add("busy", "default", aSpec())
	for _, test := range []struct {
		run  string
		code int
		out  string
		err  string
	}{
		{"r", 0, "r deleted\n", ""},
		{"r", 0, "r deleted before\n", ""},
		{"busy", 1, "", "harness: the run works; cancel it first\n"},
		{"none", 1, "", "harness: run default/none not found\n"},
	} {
		if got := call(t, nil, "", "delete", test.run, "--server", f.address); got.code != test.code || got.out != test.out || got.err != test.err {
			t.Errorf("%s: %+v", test.run, got)
		}
	}
}

// Six days and a half: the test may be slow.
func soon() *timestamppb.Timestamp {
	return timestamppb.New(time.Now().Add(6*24*time.Hour + 12*time.Hour))
}

func TestWhatARunWaitsForIsSaidWithTheCommandThatAnswersIt(t *testing.T) {
	f := serveFake(t)
	question, client, approval := aQuestion("c1", colours), aClientCall("c2"), anApproval("c3")
	question.Deadline, client.Deadline = soon(), soon()
	f.add("r", "default", aSpec()).waits(question, client, approval)
	server := " --server " + f.address
	want := `asks: Which colour?
  [1] red
  [2] dark blue
  call c1 · expires in 6 d
  harness answer r c1 ANSWER` + server + `

waits for its client: lookup_order id=12
  call c2 · expires in 6 d
  harness answer r c2 RESULT` + server + `
  or --file FILE, or --error WHY

waits for approval: run_command
    command: make c3
  It runs a command. · call c3
  harness approve r c3` + server + `
  or with --always for all calls of the tool, or --deny --reason WHY
`
	if got := call(t, nil, "", "show", "r", "--server", f.address); got.code != 0 || !strings.HasSuffix(got.out, "\n\n"+want) {
		t.Errorf("show: %s\nwant %s", got.out, want)
	}
	if got := call(t, nil, "", "watch", "r", "--server", f.address); got.code != 4 || !strings.HasSuffix(got.err, "\n\n"+want) || got.out != "" {
		t.Errorf("watch: %+v\nwant %s", got, want)
	}
	f.behave(nil, func(r *fakeRun, id string, _ proto.Message) {
		r.accept(id, "resume")
		r.waits(question, client, approval)
	})
	for _, command := range []string{"harness answer r c1 ANSWER", "harness answer r c2 RESULT", "harness approve r c3"} {
		got := call(t, nil, "", "resume", "r", "--server", f.address, "--output", "json", "--max-turns", "9")
		if got.code != 4 || strings.Count(got.err, command+server+"\n") != 1 {
			t.Errorf("%s: %+v", command, got)
		}
	}
	narrow := call(t, map[string]string{"COLUMNS": "30"}, "", "show", "r", "--server", f.address)
	for _, part := range []string{"\nwaits for its client:\n    lookup_order id=12\n", "\n  It runs a command. · call c3\n", "\n  harness answer r c1 ANSWER" + server + "\n"} {
		if !strings.Contains(narrow.out, part) {
			t.Errorf("%q is missing in\n%s", part, narrow.out)
		}
	}
}

func TestListSaysWhatRunsWaitFor(t *testing.T) {
	f := serveFake(t)
	f.add("a", "team", aSpec()).waits(aQuestion("c1", colours))
	f.add("b", "default", aSpec()).rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "provider_unavailable"},
		WakeAt: timestamppb.New(time.Now().Add(150 * time.Second)),
	})
	got := call(t, nil, "", "list", "--server", f.address, "--namespace", "*")
	for _, part := range []string{
		"\n\nteam/a asks: Which colour?\n  [1] red\n", "\n  harness answer a c1 ANSWER --server " + f.address + " --namespace team\n",
		"\n\ndefault/b resumes in 2 min\n",
	} {
		if got.code != 0 || !strings.Contains(got.out, part) {
			t.Errorf("%q is missing in %+v", part, got)
		}
	}
	got = call(t, nil, "", "list", "--server", f.address, "--namespace", "*", "--output", "json")
	for _, part := range []string{`"run_id":"a"`, `"pending":[{"call_id":"c1",`, `"pending":[],"wake_at":"2`} {
		if got.code != 0 || !strings.Contains(got.out, part) {
			t.Errorf("%q is missing in %+v", part, got)
		}
	}
}

func TestTheCommandThatExtendsABudget(t *testing.T) {
	calls, turns, tokens := uint32(300), uint32(2), uint64(1000)
	cost, low := 0.51, 0.004
	minutes := func(m int) *durationpb.Duration { return durationpb.New(time.Duration(m) * time.Minute) }
	usage := &harnessv1.Usage{InputTokens: 900, OutputTokens: 150, CostMicroUsd: 600_000}
	for want, test := range map[string]struct {
		kind    string
		budgets *harnessv1.Budgets
		spent   *harnessv1.Spent
	}{
		" --max-tool-calls 606":            {"tool_calls", &harnessv1.Budgets{ToolCalls: &calls}, &harnessv1.Spent{ToolCalls: 303}},
		" --max-turns 4":                   {"turns", &harnessv1.Budgets{Turns: &turns}, &harnessv1.Spent{Turns: 2}},
		" --timeout 2h":                    {"wall_clock", &harnessv1.Budgets{WallClock: minutes(60)}, &harnessv1.Spent{Active: minutes(60)}},
		" --timeout 1h2m":                  {"wall_clock", &harnessv1.Budgets{WallClock: minutes(30)}, &harnessv1.Spent{Active: minutes(31)}},
		" --max-tokens 2100":               {"tokens", &harnessv1.Budgets{Tokens: &tokens}, &harnessv1.Spent{Usage: usage}},
		" --max-cost 1.20":                 {"cost", &harnessv1.Budgets{CostUsd: &cost}, &harnessv1.Spent{Usage: usage}},
		" --max-cost 0.01":                 {"cost", &harnessv1.Budgets{CostUsd: &low}, &harnessv1.Spent{Usage: &harnessv1.Usage{CostMicroUsd: 4000}}},
		" --max-turns 4 --max-tokens 2100": {"turns", &harnessv1.Budgets{Turns: &turns, Tokens: &tokens}, &harnessv1.Spent{Turns: 2, Usage: usage}},
		" --max-tool-calls N":              {"tool_calls", nil, nil}, // the state says nothing of it
	} {
		f := serveFake(t)
		r := f.add("r", "default", aSpec())
		r.state = &harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Budgets: test.budgets}, Spent: test.spent}
		r.rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:" + test.kind}})
		line := "to continue: harness resume r" + want + " --server " + f.address + "\n"
		if got := call(t, nil, "", "watch", "r", "--server", f.address); got.code != 4 || !strings.Contains(got.err, line) {
			t.Errorf("%+v, want %s", got, line)
		}
		if got := call(t, nil, "", "show", "r", "--server", f.address); got.code != 0 || !strings.Contains(got.out, line) {
			t.Errorf("%+v, want %s", got, line)
		}
	}
}
