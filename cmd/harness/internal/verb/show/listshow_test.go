package show_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestListAndShow(t *testing.T) {
	t.Setenv("TZ", "UTC")
	f := harnesstest.ServeGateway(t)
	f.Add("a", "default", harnesstest.ASpec()).Parked("c1")
	f.Add("b", "default", harnesstest.ASpec()).Done()
	for name, args := range map[string][]string{
		"list.json":         {"list", "--output", "json"},
		"list-done.json":    {"list", "--output", "json", "--status", "done"},
		"show.json":         {"show", "a", "--output", "json"},
		"conversation.txt":  {"show", "a", "--conversation"},
		"conversation.json": {"show", "a", "--conversation", "--output", "json"},
	} {
		got := harnesstest.Call(t, nil, "", append(args, "--server", f.Address)...)
		if got.Code != 0 || got.Err != "" {
			t.Errorf("%s: %+v", name, got)
		}
		harnesstest.Golden(t, name, got.Out)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"list"}, "PARKED approval"},
		{[]string{"show", "b"}, "the answer"},
		{[]string{"show", "a"}, "waits for approval: run_command"},
		{[]string{"show", "a"}, "started by  nina\n"},
		{[]string{"show", "a", "--state", "--output", "json"}, `"phase":"EXECUTING"`},
		{[]string{"show", "a", "--state", "5"}, `"version": 5`},
		{[]string{"show", "--state=5", "a"}, `"version": 5`},
	} {
		if got := harnesstest.Call(t, nil, "", append(test.args, "--server", f.Address)...); got.Code != 0 || !strings.Contains(got.Out, test.want) {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
}

// TestShowHasTheTree: each sub-agent below the one that called it, with state, turns and cost.
func TestShowHasTheTree(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("root", "default", harnesstest.ASpec()).Run.Children = []*harnessv1.ChildRun{
		{RunId: "a-one", Agent: "explore", Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "agent"}, Turns: 3, Usage: &harnessv1.Usage{InputTokens: 50, CostMicroUsd: 1200}},
		{RunId: "a-two", Agent: "task"},
	}
	f.Add("a-one", "default", harnesstest.ASpec()).Run.Children = []*harnessv1.ChildRun{
		{RunId: "a-below", Agent: "research", Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Turns: 1, Usage: &harnessv1.Usage{InputTokens: 7}},
	}
	want := `
sub-agents
  explore  PARKED agent  3 turns  50 tokens  $0.0012  a-one
    research  RUNNING  1 turns  7 tokens  a-below
  task  waits to start  0 turns  0 tokens  a-two
`
	if got := harnesstest.Call(t, nil, "", "show", "root", "--server", f.Address); got.Code != 0 || !strings.Contains(got.Out, want) {
		t.Errorf("got %+v", got)
	}
}

func TestADataDirectoryThatDoesNotExist(t *testing.T) {
	t.Parallel()
	data := t.TempDir() + "/none"
	if got := harnesstest.Call(t, nil, "", "list", "--data", data, "--output", "json"); got.Code != 0 || got.Out != "{\"runs\":[]}\n" {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{
		{"show", "r"}, {"watch", "r"}, {"resume", "r"}, {"interrupt", "r"}, {"cancel", "r"}, {"approve", "r"}, {"answer", "r", "text"}, {"delete", "r"},
	} {
		if got := harnesstest.Call(t, nil, "", append(args, "--data", data)...); got.Code != 1 || !strings.Contains(got.Err, "does not exist") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// The pauses and ends in the history of a run are not its current status.
func TestWatchReadsPastOldPauses(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	r := f.Add("r", "default", harnesstest.ASpec())
	r.Parked("c1")
	r.Accept("x", "approval")
	r.Parked("c2")
	r.Accept("y", "approval")
	r.Done()
	got := harnesstest.Call(t, nil, "", "watch", "--server", f.Address, "r", "--output", "jsonl")
	if got.Code != 0 || strings.Count(got.Out, "input.accepted") != 2 || strings.Count(got.Out, `"result"`) != 1 {
		t.Errorf("%+v", got)
	}
	got = harnesstest.Call(t, nil, "", "watch", "--server", f.Address, "r", "--output", "jsonl", "--from", "5")
	if got.Code != 0 || strings.Count(got.Out, "input.accepted") != 1 {
		t.Errorf("%+v", got)
	}
}
