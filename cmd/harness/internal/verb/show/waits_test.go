package show_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestWhatARunWaitsForIsSaidWithTheCommandThatAnswersIt(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	question, client, approval := harnesstest.AQuestion("c1", harnesstest.Colours), harnesstest.AClientCall("c2"), harnesstest.AnApproval("c3")
	question.Deadline, client.Deadline = harnesstest.Soon(), harnesstest.Soon()
	f.Add("r", "default", harnesstest.ASpec()).Waits(question, client, approval)
	server := " --server " + f.Address
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
	if got := harnesstest.Call(t, nil, "", "show", "r", "--server", f.Address); got.Code != 0 || !strings.HasPrefix(got.Out, "PARKED: A call waits for an answer.\n\n"+want+"\nrun ") {
		t.Errorf("show: %s\nwant %s", got.Out, want)
	}
	if got := harnesstest.Call(t, nil, "", "watch", "r", "--server", f.Address); got.Code != 4 || !strings.HasSuffix(got.Err, "\n\n"+want) || got.Out != "" {
		t.Errorf("watch: %+v\nwant %s", got, want)
	}
	f.Behave(nil, func(r *harnesstest.Run, id string, _ proto.Message) {
		r.Accept(id, "resume")
		r.Waits(question, client, approval)
	})
	for _, command := range []string{"harness answer r c1 ANSWER", "harness answer r c2 RESULT", "harness approve r c3"} {
		got := harnesstest.Call(t, nil, "", "resume", "r", "--server", f.Address, "--output", "json", "--max-turns", "9")
		if got.Code != 4 || strings.Count(got.Err, command+server+"\n") != 1 {
			t.Errorf("%s: %+v", command, got)
		}
	}
	narrow := harnesstest.Call(t, map[string]string{"COLUMNS": "30"}, "", "show", "r", "--server", f.Address)
	for _, part := range []string{"\nwaits for its client:\n    lookup_order id=12\n", "\n  It runs a command. · call c3\n", "\n  harness answer r c1 ANSWER" + server + "\n"} {
		if !strings.Contains(narrow.Out, part) {
			t.Errorf("%q is missing in\n%s", part, narrow.Out)
		}
	}
}

func TestListSaysWhatRunsWaitFor(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("a", "team", harnesstest.ASpec()).Waits(harnesstest.AQuestion("c1", harnesstest.Colours))
	f.Add("b", "default", harnesstest.ASpec()).Rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "provider_unavailable"},
		WakeAt: timestamppb.New(time.Now().Add(150 * time.Second)),
	})
	got := harnesstest.Call(t, nil, "", "list", "--server", f.Address, "--namespace", "*")
	for _, part := range []string{
		"\n\nteam/a asks: Which colour?\n  [1] red\n", "\n  harness answer a c1 ANSWER --server " + f.Address + " --namespace team\n",
		"\n\ndefault/b resumes in 2 min\n",
	} {
		if got.Code != 0 || !strings.Contains(got.Out, part) {
			t.Errorf("%q is missing in %+v", part, got)
		}
	}
	got = harnesstest.Call(t, nil, "", "list", "--server", f.Address, "--namespace", "*", "--output", "json")
	for _, part := range []string{`"run_id":"a"`, `"pending":[{"call_id":"c1",`, `"pending":[],"wake_at":"2`} {
		if got.Code != 0 || !strings.Contains(got.Out, part) {
			t.Errorf("%q is missing in %+v", part, got)
		}
	}
}

func TestTheCommandThatExtendsABudget(t *testing.T) {
	t.Parallel()
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
		f := harnesstest.ServeGateway(t)
		r := f.Add("r", "default", harnesstest.ASpec())
		r.State = &harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Budgets: test.budgets}, Spent: test.spent}
		r.Rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:" + test.kind}})
		line := "to continue: harness resume r" + want + " --server " + f.Address + "\n"
		if got := harnesstest.Call(t, nil, "", "watch", "r", "--server", f.Address); got.Code != 4 || !strings.Contains(got.Err, line) {
			t.Errorf("%+v, want %s", got, line)
		}
		if got := harnesstest.Call(t, nil, "", "show", "r", "--server", f.Address); got.Code != 0 || !strings.Contains(got.Out, line) {
			t.Errorf("%+v, want %s", got, line)
		}
	}
}
