package steer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// sentTo are the inputs that a gateway got, in a few words each.
func sentTo(f *harnesstest.Gateway) []string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var words []string
	for _, input := range f.Inputs {
		switch in := input.(type) {
		case *harnessv1.UserMessage:
			words = append(words, "message "+in.GetContent().GetInline())
		case *harnessv1.ModeChange:
			words = append(words, "mode "+in.GetMode())
		case *harnessv1.ReplanRequest:
			words = append(words, "replan "+in.GetReason())
		default:
			words = append(words, fmt.Sprintf("%T", in))
		}
	}
	return words
}

func TestSendChangesTheModeAndAsksForAnotherPlan(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ended bool
		args  []string
		stdin string
		want  string
		said  string
	}{
		{false, []string{"go", "on"}, "", "message go on", "the message is stored"},
		{false, []string{"--mode", "plan"}, "", "mode plan", "the mode is stored"},
		{false, []string{"--mode", "plan", "think", "first"}, "", "mode plan|message think first", "the mode and the message are stored"},
		{false, []string{"--replan"}, "", "replan ", "the wish for another plan is stored"},
		{false, []string{"--replan", "it", "is too long"}, "", "replan it is too long", "the wish for another plan is stored"},
		{false, []string{"--replan", "-"}, "from stdin\n", "replan from stdin", "the wish for another plan is stored"},
		{false, []string{"--mode", "execute", "--replan", "now"}, "", "mode execute|replan now", "the mode and the wish for another plan are stored"},
		// A run that has ended is opened again by the message, and then takes the mode.
		{true, []string{"--mode", "execute", "carry it out"}, "", "message carry it out|mode execute", "the message and the mode are stored"},
	} {
		f := harnesstest.ServeGateway(t)
		r := f.Add("r", "default", harnesstest.ASpec())
		if test.ended {
			r.Done()
		}
		got := harnesstest.Call(t, nil, test.stdin, append([]string{"send", "r", "--server", f.Address}, test.args...)...)
		if sent := strings.Join(sentTo(f), "|"); got.Code != 0 || sent != test.want || !strings.Contains(got.Err, test.said+";") {
			t.Errorf("%q sent %q: %+v", test.args, sent, got)
		}
	}
}

func TestSendsThatAreRefused(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("r", "default", harnesstest.ASpec())
	f.Add("ended", "default", harnesstest.ASpec()).Done()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"r"}, "TEXT is missing"},
		{[]string{"r", "--mode", ""}, "--mode: must not be empty"},
		{[]string{"r", "--mode", "hasty", "hello"}, `--mode: unknown mode "hasty": must be one of plan, execute`},
		{[]string{"ended", "--mode", "hasty", "hello"}, `--mode: unknown mode "hasty"`},
		{[]string{"ended", "--mode", "plan"}, "has ended; send it a message first"},
		{[]string{"ended", "--replan", "why"}, "has ended"},
	} {
		got := harnesstest.Call(t, nil, "", append([]string{"send", "--server", f.Address}, test.args...)...)
		if got.Code != 1 || !strings.Contains(got.Err, test.want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
	if sent := sentTo(f); len(sent) != 0 {
		t.Errorf("something was stored: %q", sent)
	}
}

// A mode in the environment is meant for runs that are started.
func TestAModeInTheEnvironmentIsNotSent(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("r", "default", harnesstest.ASpec())
	env := map[string]string{"HARNESS_MODE": "plan", "HARNESS_REPLAN": "true"}
	if got := harnesstest.Call(t, env, "", "send", "r", "hello", "--server", f.Address); got.Code != 0 {
		t.Errorf("%+v", got)
	}
	if sent := strings.Join(sentTo(f), "|"); sent != "message hello" {
		t.Errorf("sent %q", sent)
	}
}

func TestReviewsAndContractQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	failed := harnesstest.ToolAnswer("v1", "not today")
	failed.IsError = true
	question := harnesstest.AQuestion(runstate.ContractCallID("colour", 9), `{"question":"Which colour?"}`)
	question.Tool = runstate.ContractQuestion
	for _, test := range []struct {
		call *harnessv1.PendingCall
		args []string
		want proto.Message
	}{
		{harnesstest.AReview("v1"), []string{"approve", "r"}, &harnessv1.Approval{CallId: "v1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}},
		{harnesstest.AReview("v1"), []string{"approve", "r", "v1", "--deny", "--reason", "no"}, &harnessv1.Approval{CallId: "v1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "no"}},
		{harnesstest.AReview("v1"), []string{"answer", "r", "--error", "not today"}, failed},
		{harnesstest.AReview("v1"), []string{"answer", "r", "v1", "not today", "--error"}, failed},
		{question, []string{"answer", "r", "blue"}, harnesstest.ToolAnswer("contract:colour:9", "blue")},
		{question, []string{"answer", "r", "contract:colour:9", "blue"}, harnesstest.ToolAnswer("contract:colour:9", "blue")},
		{question, []string{"answer", "r", "--call", "contract:colour:9", "blue"}, harnesstest.ToolAnswer("contract:colour:9", "blue")},
	} {
		f := harnesstest.ServeGateway(t)
		f.Add("r", "default", harnesstest.ASpec()).Waits(test.call)
		got := harnesstest.Call(t, nil, "", append(test.args, "--server", f.Address)...)
		if got.Code != 0 || len(f.Inputs) != 1 || !proto.Equal(f.Inputs[0], test.want) {
			t.Errorf("%q sent %v: %+v", test.args, f.Inputs, got)
		}
	}
	f := harnesstest.ServeGateway(t)
	f.Add("r", "default", harnesstest.ASpec()).Waits(harnesstest.AReview("v1"))
	outside := harnesstest.AnApproval("o1")
	outside.OnlyOnce = true
	f.Add("o", "default", harnesstest.ASpec()).Waits(outside)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"approve", "r", "--always"}, "--always: call v1 waits for a review"},
		{[]string{"approve", "o", "--always"}, "--always: call o1 leaves the sandbox"},
		{[]string{"answer", "r", "fine"}, "waits for a review, not for an answer: harness approve r v1"},
	} {
		got := harnesstest.Call(t, nil, "", append(test.args, "--server", f.Address)...)
		if got.Code != 1 || !strings.Contains(got.Err, test.want) {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
	if got := harnesstest.Call(t, nil, "", "show", "r", "--server", f.Address); !strings.Contains(got.Out, "waits for a review: run_command\n    command: make v1\n") ||
		!strings.Contains(got.Out, "harness approve r v1") || !strings.Contains(got.Out, "or harness resume, which continues it") {
		t.Errorf("show: %+v", got)
	}
	f.Took = func(r *harnesstest.Run, id string, input proto.Message) {
		r.Accept(id, "resume")
		r.Done()
	}
	if got := harnesstest.Call(t, nil, "", "resume", "r", "--server", f.Address); got.Code != 0 {
		t.Errorf("resume: %+v", got)
	}
}

// busy is the state of a run that has work items, a contract and a mode.
func busy() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		Mode: "plan",
		WorkItemLedger: &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{
			{Id: "w1", Title: "Read", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE},
			{Id: "w2", Title: "Write", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS},
		}},
		TaskContract: &harnessv1.TaskContract{RequiredOutputs: []*harnessv1.RequiredOutput{{Id: "report", Description: "The report exists"}, {Id: "cites", Description: "It cites"}}},
		CoverageLedger: &harnessv1.CoverageLedger{TurnNumber: 3, Coverage: &harnessv1.Coverage{Met: 1, Total: 2, Unmet: []string{"cites"}},
			Requirements: []*harnessv1.RequirementCoverage{
				{RequirementId: "report", Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET, Confidence: 1, Evidence: []*harnessv1.Evidence{{Kind: "file", Text: "report.md"}}},
				{RequirementId: "cites", Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET, Why: "no match"},
			}},
	}
}

func TestShowNamesModeWorkItemsAndContract(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("r", "default", harnesstest.ASpec()).State = busy()
	f.Add("bare", "default", harnesstest.ASpec())
	got := harnesstest.Call(t, nil, "", "show", "r", "--server", f.Address)
	for _, want := range []string{
		"mode        plan\n",
		"\nwork items: 1 of 2 finished\n  ✓ w1 Read\n  ▸ w2 Write\n",
		"\ncontract: 1 of 2 requirements met; missing: cites\n  ✓ report  The report exists  file: report.md\n  ○ cites  It cites  not met: no match\n",
	} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is missing in\n%s", want, got.Out)
		}
	}
	if bare := harnesstest.Call(t, nil, "", "show", "bare", "--server", f.Address); strings.Contains(bare.Out, "\nmode ") || strings.Contains(bare.Out, "work items") || strings.Contains(bare.Out, "contract") {
		t.Errorf("a run without any of it: %s", bare.Out)
	}
	var shown struct {
		Mode         string
		WorkItems    []struct{ ID, Status string }  `json:"work_items"`
		Requirements []struct{ Status, Why string } `json:"requirements"`
	}
	if err := json.Unmarshal([]byte(harnesstest.Call(t, nil, "", "show", "r", "--output", "json", "--server", f.Address).Out), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Mode != "plan" || len(shown.WorkItems) != 2 || shown.WorkItems[1].Status != "IN_PROGRESS" || len(shown.Requirements) != 2 || shown.Requirements[1].Why != "no match" {
		t.Errorf("got %+v", shown)
	}
}

func TestWhatWasMadeIsNamedAndItsTextFetched(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = func(r *harnesstest.Run) {
		r.Rest(&harnessv1.HarnessResult{
			Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true, Answer: content.Inline("the answer"),
			Coverage: &harnessv1.Coverage{Met: 2, Total: 2},
			Deliverables: []*harnessv1.Deliverable{
				{ItemId: "w1", Title: "Report", Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d1", Size: 20000}}}},
				{ItemId: "w2", Title: "Table", Content: content.Inline("a | b")},
			},
		})
	}
	got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--output", "json", "go")
	var result struct {
		Deliverables []struct {
			ItemID  string `json:"item_id"`
			Title   string
			Content string
		}
		Coverage struct {
			Met, Total int
			Unmet      []string
		}
	}
	if err := json.Unmarshal([]byte(got.Out), &result); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	made := result.Deliverables
	if len(made) != 2 || made[0].Content != "the whole text of d1" || made[1].ItemID != "w2" || made[1].Content != "a | b" || result.Coverage.Met != 2 || result.Coverage.Total != 2 {
		t.Errorf("got %+v", result)
	}
	text := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "go")
	for _, want := range []string{"2 of 2 requirements met\n", "deliverables:\n• Report  w1 · 20 bytes\n• Table  w2 · 5 bytes\n"} {
		if !strings.Contains(text.Err, want) {
			t.Errorf("%q is missing in %s", want, text.Err)
		}
	}
	if text.Out != "the answer\n" {
		t.Errorf("stdout: %q", text.Out)
	}
}

// TestTextOnStdinGoesWithTheMessage checks the text on stdin for a message, for all of one, and for one that is too long.
func TestTextOnStdinGoesWithTheMessage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args             []string
		stdin, want, say string
	}{
		{[]string{"what", "fails?"}, "FAIL\n", "message what fails?\n\nThe text on standard input:\n\nFAIL", "standard input (5 bytes) goes with the message"},
		{[]string{"-"}, "all of it\n", "message all of it", "is stored"},
		{[]string{"go on"}, "\n", "message go on", "is stored"},
		{[]string{"go on"}, strings.Repeat("x", 300_000), "", "larger than 256 KiB: write it to a file in the workspace, and name the file in the message"},
		{[]string{"--mode", "plan"}, "left alone", "mode plan", "the mode is stored"},
	} {
		f := harnesstest.ServeGateway(t)
		f.Add("r", "default", harnesstest.ASpec())
		got := harnesstest.Call(t, nil, test.stdin, append([]string{"send", "r", "--server", f.Address}, test.args...)...)
		if sent := strings.Join(sentTo(f), "|"); sent != test.want || !strings.Contains(got.Err, test.say) {
			t.Errorf("%q sent %.200q: %.500s", test.args, sent, got.Err)
		}
	}
}
