package cli

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func aSpec() *harnessv1.RunSpec {
	return &harnessv1.RunSpec{Goal: content.Inline("Mend it."), Workspace: "/w", Agent: &harnessv1.AgentSpec{Name: "coder", Model: "openai:m"}}
}

func TestResume(t *testing.T) {
	f := serveFake(t)
	f.took = func(r *fakeRun, id string, input proto.Message) {
		if resume, ok := input.(*harnessv1.Resume); ok {
			if resume.GetBudgets().GetToolCalls() != 400 {
				t.Errorf("%v", resume)
			}
			r.accept(id, "resume")
			r.done()
		}
	}
	f.add("parked", "default", aSpec()).parked("c1")
	if got := call(t, nil, "", "resume", "--server", f.address, "parked", "--max-tool-calls", "400"); got.code != 0 || got.out != "the answer\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "resume", "--server", f.address, "parked"); got.code != 1 || !strings.Contains(got.err, "harness send parked") || strings.Count(got.err, "\n") != 1 {
		t.Errorf("an ended run: %+v", got)
	}
	f.add("running", "default", aSpec())
	f.watched = (*fakeRun).done
	if got := call(t, nil, "", "resume", "--server", f.address, "running"); got.code != 0 {
		t.Errorf("a running run: %+v", got)
	}
	if got := call(t, nil, "", "resume", "--server", f.address, "none"); got.code != 1 || !strings.Contains(got.err, "not found") {
		t.Errorf("no run: %+v", got)
	}
}

// A message that was stored before a resume resumes the run. The resume then finds it
// ended, which is a success: it has nothing left to do.
func TestAResumeThatComesAfterTheRunHasGoneOnIsNoRefusal(t *testing.T) {
	late := func(r *fakeRun, id string, _ proto.Message) {
		r.accept("m", "user_message")
		r.event(&harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{Goal: "and now this", Segment: 2}}})
		r.event(&harnessv1.Event{TurnNumber: 2, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
		r.event(&harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{ItemId: id, Kind: "resume", Reason: "the run has ended"}}})
		r.done()
	}
	refused := func(r *fakeRun, id string, _ proto.Message) {
		r.event(&harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{ItemId: id, Kind: "resume", Reason: "the run has ended"}}})
		r.done()
	}
	for _, test := range []struct {
		took func(*fakeRun, string, proto.Message)
		args []string
		said bool
	}{
		{late, nil, false},
		{late, []string{"--max-turns", "9"}, true}, // the budget has not been taken
		{refused, nil, true},
	} {
		f := serveFake(t)
		f.took = test.took
		f.add("r", "default", aSpec()).rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED})
		got := call(t, nil, "", append([]string{"resume", "--server", f.address, "r"}, test.args...)...)
		if got.code != 0 || strings.Contains(got.err, "rejected") != test.said {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
}

// A rest from before an input is not the rest that follows it.
func TestContinueWaitsForItsMessage(t *testing.T) {
	f := serveFake(t)
	f.took = func(r *fakeRun, id string, input proto.Message) {
		if text := input.(*harnessv1.UserMessage).GetContent().GetInline(); text != "and now this" {
			t.Errorf("%q", text)
		}
		r.parked() // something else happened in between
		r.accept(id, "user_message")
		r.event(&harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{Goal: "and now this", Segment: 2}}})
		r.done()
	}
	f.add("r", "default", aSpec()).done()
	if got := call(t, nil, "", "run", "--server", f.address, "--continue", "r", "and", "now", "this"); got.code != 0 || got.out != "the answer\n" {
		t.Errorf("%+v", got)
	}
}

// The pauses and ends in the history of a run are not its current status.
func TestWatchReadsPastOldPauses(t *testing.T) {
	f := serveFake(t)
	r := f.add("r", "default", aSpec())
	r.parked("c1")
	r.accept("x", "approval")
	r.parked("c2")
	r.accept("y", "approval")
	r.done()
	got := call(t, nil, "", "watch", "--server", f.address, "r", "--output", "jsonl")
	if got.code != 0 || strings.Count(got.out, "input.accepted") != 2 || strings.Count(got.out, `"result"`) != 1 {
		t.Errorf("%+v", got)
	}
	got = call(t, nil, "", "watch", "--server", f.address, "r", "--output", "jsonl", "--from", "5")
	if got.code != 0 || strings.Count(got.out, "input.accepted") != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSendAndApprove(t *testing.T) {
	f := serveFake(t)
	f.add("r", "default", aSpec()).parked("c1")
	f.add("two", "default", aSpec()).parked("c1", "c2")
	f.add("none", "default", aSpec()).done()
	server := []string{"--server", f.address}
	for _, test := range []struct {
		args []string
		want proto.Message
	}{
		{[]string{"send", "r", "look", "here"}, &harnessv1.UserMessage{Content: content.Inline("look here")}},
		{[]string{"approve", "r"}, &harnessv1.Approval{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}},
		{[]string{"approve", "two", "c2", "--always"}, &harnessv1.Approval{CallId: "c2", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN}},
		{[]string{"approve", "r", "--deny", "--reason", "no"}, &harnessv1.Approval{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "no"}},
	} {
		if got := call(t, nil, "", append(test.args, server...)...); got.code != 0 || got.out != "" {
			t.Errorf("%q: %+v", test.args, got)
		}
		if got := f.inputs[len(f.inputs)-1]; !proto.Equal(got, test.want) {
			t.Errorf("%q sent %v", test.args, got)
		}
	}
	if got := call(t, nil, "", append(server, "approve", "two")...); got.code != 1 {
		t.Errorf("%+v", got)
	}
	for run, want := range map[string]string{"two": `["c1" "c2"]`, "none": "no approval", "gone": "not found"} {
		if got := call(t, nil, "", "approve", run, "--server", f.address); got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v", run, got)
		}
	}
}

func TestInterruptAndCancel(t *testing.T) {
	f := serveFake(t)
	f.took = func(r *fakeRun, id string, input proto.Message) {
		if _, ok := input.(*harnessv1.Interrupt); ok {
			r.interrupted(id)
			return
		}
		r.accept(id, "cancel")
		r.rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_CANCELLED, Reason: &harnessv1.StopReason{Kind: "cancelled"}})
	}
	f.add("r", "default", aSpec())
	if got := call(t, nil, "", "interrupt", "r", "--server", f.address); got.code != 0 || got.out != "r PARKED interrupted\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "cancel", "r", "--server", f.address); got.code != 0 || got.out != "r CANCELLED cancelled\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "cancel", "r", "--server", f.address); got.code != 1 || !strings.Contains(got.err, "has ended") {
		t.Errorf("%+v", got)
	}
}

func TestListAndShow(t *testing.T) {
	t.Setenv("TZ", "UTC")
	f := serveFake(t)
	f.add("a", "default", aSpec()).parked("c1")
	f.add("b", "default", aSpec()).done()
	for name, args := range map[string][]string{
		"list.json":         {"list", "--output", "json"},
		"list-done.json":    {"list", "--output", "json", "--status", "done"},
		"show.json":         {"show", "a", "--output", "json"},
		"conversation.txt":  {"show", "a", "--conversation"},
		"conversation.json": {"show", "a", "--conversation", "--output", "json"},
	} {
		got := call(t, nil, "", append(args, "--server", f.address)...)
		if got.code != 0 || got.err != "" {
			t.Errorf("%s: %+v", name, got)
		}
		golden(t, name, got.out)
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
		if got := call(t, nil, "", append(test.args, "--server", f.address)...); got.code != 0 || !strings.Contains(got.out, test.want) {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
}

func TestADataDirectoryThatDoesNotExist(t *testing.T) {
	data := t.TempDir() + "/none"
	if got := call(t, nil, "", "list", "--data", data, "--output", "json"); got.code != 0 || got.out != "{\"runs\":[]}\n" {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{
		{"show", "r"}, {"watch", "r"}, {"resume", "r"}, {"interrupt", "r"}, {"cancel", "r"}, {"approve", "r"}, {"answer", "r", "text"}, {"delete", "r"},
	} {
		if got := call(t, nil, "", append(args, "--data", data)...); got.code != 1 || !strings.Contains(got.err, "does not exist") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestShowHasTheTree: each sub-agent below the one that called it, with state, turns and cost.
func TestShowHasTheTree(t *testing.T) {
	f := serveFake(t)
	f.add("root", "default", aSpec()).run.Children = []*harnessv1.ChildRun{
		{RunId: "a-one", Agent: "explore", Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "agent"}, Turns: 3, Usage: &harnessv1.Usage{InputTokens: 50, CostMicroUsd: 1200}},
		{RunId: "a-two", Agent: "task"},
	}
	f.add("a-one", "default", aSpec()).run.Children = []*harnessv1.ChildRun{
		{RunId: "a-below", Agent: "research", Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Turns: 1, Usage: &harnessv1.Usage{InputTokens: 7}},
	}
	want := `
sub-agents
  explore  PARKED agent  3 turns  50 tokens  $0.0012  a-one
    research  RUNNING  1 turns  7 tokens  a-below
  task  waits to start  0 turns  0 tokens  a-two
`
	if got := call(t, nil, "", "show", "root", "--server", f.address); got.code != 0 || !strings.Contains(got.out, want) {
		t.Errorf("got %+v", got)
	}
}
