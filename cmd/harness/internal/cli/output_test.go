package cli

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// story is a run in which a good deal happens.
func story(r *fakeRun) {
	ev := func(turn uint32, e *harnessv1.Event) {
		e.TurnNumber = turn
		r.event(e)
	}
	delta := func(turn, attempt, try uint32, offset uint64, text string) {
		r.delta(&harnessv1.Delta{TurnNumber: turn, Attempt: attempt, Try: try, Offset: offset, Text: text})
	}
	ev(0, &harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{Goal: "Mend it.", Segment: 1}}})
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	delta(1, 1, 1, 0, "I'll lo")
	delta(1, 1, 1, 0, "I'll lo") // delivered twice
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: &harnessv1.ModelRetry{Try: 1, Error: "the stream was cut", Wait: durationpb.New(500 * time.Millisecond)}}})
	r.delta(&harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 2, Reasoning: "Where is"})
	r.delta(&harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 2, ReasoningOffset: 8, Reasoning: " it?", Text: "I"})
	delta(1, 1, 2, 1, " will look\n")
	delta(1, 1, 2, 12, "around\x1b[2J.")
	delta(1, 1, 1, 7, "an old try")
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{Text: content.Inline("I will look\naround\x1b[2J. Now."), Reasoning: content.Inline("Where is it?"), ToolCalls: 2, Usage: &harnessv1.Usage{ReasoningTokens: 1200}}}})
	delta(1, 1, 2, 12, "late")
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: "c1", Tool: "read_file", Arguments: content.Inline(`{"path":"a.txt","limit":3}`)}}})
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: "c2", Tool: "run_command", Arguments: content.Inline(`{"command":"go test ./..."}`)}}})
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: "c1", Tool: "read_file", Result: content.Inline("first line\nsecond"), Duration: durationpb.New(3 * time.Millisecond)}}})
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{CallId: "c2", Tool: "run_command", Error: content.Inline("exit code 1"), Duration: durationpb.New(1200 * time.Millisecond)}}})
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{CallId: "c3", Tool: "write_file", Reason: "the policy denies it"}}})
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_Repair{Repair: &harnessv1.Repaired{CallId: "c4", Tool: "run_command", Turn: 1, Reason: "effect unknown"}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{Text: content.Inline("Not streamed.")}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: "c5", Tool: "ask_user", Arguments: content.Inline(`{"question":"Which\ncolour?","options":["red","dark blue"]}`), Awaits: "question"}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: "c6", Tool: "lookup_order", Arguments: content.Inline(`{"id":12}`), Awaits: "client_tool"}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{ItemId: "i", Kind: "tool_answer", Reason: "call c5 already has an answer"}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{ItemId: "j", Kind: "resume", Reason: "the run has ended"}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_ContinuationPrompt{ContinuationPrompt: &harnessv1.ContinuationPrompt{Count: 1, Max: 2}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_StopRejected{StopRejected: &harnessv1.StopRejected{Kind: "work_complete_not_called", Message: "Call work_complete.", Count: 1}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_ContextPressure{ContextPressure: &harnessv1.ContextPressure{Level: "soft", UsedTokens: 103000, MaxInputTokens: 128000}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_CompactionStarted{CompactionStarted: &harnessv1.CompactionStarted{Level: "soft", TokensBefore: 103000, TokensToFree: 39000, Background: true, Job: "k1"}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_CompactionStarted{CompactionStarted: &harnessv1.CompactionStarted{Level: "blocking", TokensBefore: 122000, TokensToFree: 58000}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_CompactionCompleted{CompactionCompleted: &harnessv1.CompactionCompleted{
		TokensBefore: 122000, TokensAfter: 62400, FreedTokens: 59600, Duration: durationpb.New(300 * time.Millisecond), Pass: 1, Strategies: []string{"clear", "externalize"},
		Changes: []*harnessv1.CompactionChange{
			{Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE, FirstMessage: 4, ThroughMessage: 80, Messages: 34, FreedTokens: 50000},
			{Action: harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE, Class: harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE, FirstMessage: 6, ThroughMessage: 60, Messages: 2, FreedTokens: 9600},
		},
	}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_BudgetWarn{BudgetWarn: &harnessv1.BudgetWarn{Budget: "cost", Limit: 0.5, Used: 0.51}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_WorkerTakeover{WorkerTakeover: &harnessv1.WorkerTakeover{Attempt: 2}}})
	ev(2, &harnessv1.Event{Event: &harnessv1.Event_ExecutorMissing{ExecutorMissing: &harnessv1.ExecutorMissing{Executor: "planner"}}})
	r.rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true, TurnCount: 2, ToolCalls: 4,
		Answer: content.Inline("Not streamed."), Summary: content.Inline("It is mended."),
		Usage:    &harnessv1.Usage{InputTokens: 12345, OutputTokens: 1267, CostMicroUsd: 12300, ReasoningTokens: 1200, CacheWriteTokens: 9000},
		Reason:   &harnessv1.StopReason{Kind: "agent_done", Message: "The agent is done."},
		Duration: durationpb.New(65 * time.Second),
	})
}

func TestWhatARunPrints(t *testing.T) {
	f := serveFake(t)
	f.started = story
	for _, output := range []string{"text", "json", "jsonl"} {
		got := call(t, nil, "", "run", "--server", f.address, "--run-id", "r-"+output, "--workspace", "/w", "--model", "openai:m", "--output", output, "Mend it.")
		if got.code != 0 {
			t.Fatalf("%s: %+v", output, got)
		}
		golden(t, output+".out", got.out)
		golden(t, output+".err", got.err)
	}
	// A locale without UTF-8 gets ASCII only.
	got := call(t, map[string]string{"LANG": "C"}, "", "run", "--server", f.address, "--workspace", "/w", "Mend it.")
	if strings.IndexFunc(got.err, func(r rune) bool { return r > 127 && r != '�' }) >= 0 {
		t.Errorf("beyond ASCII: %s", got.err)
	}
}

func TestEveryLineOfJSONLIsAnObjectAndTheLastIsTheResult(t *testing.T) {
	f := serveFake(t)
	f.started = story
	got := call(t, nil, "", "run", "--server", f.address, "--output", "jsonl", "go")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	for i, line := range lines {
		var object struct{ Type string }
		if err := json.Unmarshal([]byte(line), &object); err != nil || object.Type == "" || (object.Type == "result") != (i == len(lines)-1) {
			t.Errorf("line %d: %s: %v", i, line, err)
		}
	}
}

func TestNoStreamHasNoDeltas(t *testing.T) {
	f := serveFake(t)
	f.started = story
	got := call(t, nil, "", "run", "--server", f.address, "--output", "jsonl", "--no-stream", "go")
	if got.code != 0 || strings.Contains(got.out, `"delta"`) || f.starts[0].GetSpec().GetConfig().GetModel().Streaming == nil {
		t.Errorf("%+v", got)
	}
}

func TestABrokenConnectionShowsNothingTwiceAndLosesNothing(t *testing.T) {
	f := serveFake(t)
	f.started = func(r *fakeRun) {
		for i := range 5 {
			r.event(&harnessv1.Event{TurnNumber: uint32(i + 1), Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
		}
		r.done()
	}
	f.cuts = 3
	got := call(t, nil, "", "run", "--server", f.address, "--output", "jsonl", "go")
	if got.code != 0 || strings.Count(got.out, "step.start") != 5 || strings.Count(got.err, "unavailable") == 0 {
		t.Errorf("%+v", got)
	}
	last := 0
	for _, line := range strings.Split(strings.TrimSpace(got.out), "\n") {
		var event struct{ Version int }
		if json.Unmarshal([]byte(line), &event) == nil && event.Version > 0 {
			if event.Version <= last {
				t.Errorf("version %d after %d", event.Version, last)
			}
			last = event.Version
		}
	}
}

func TestALongAnswerIsFetched(t *testing.T) {
	f := serveFake(t)
	f.started = func(r *fakeRun) {
		r.rest(&harnessv1.HarnessResult{
			Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true,
			Answer: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d1", Size: 9000, Preview: "the"}}},
		})
	}
	if got := call(t, nil, "", "run", "--server", f.address, "go"); got.out != "the whole text of d1\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "run", "--server", f.address, "--output", "json", "go"); !strings.Contains(got.out, `"answer":"the whole text of d1"`) {
		t.Errorf("%+v", got)
	}
}

func TestHintsOfAParkedRun(t *testing.T) {
	f := serveFake(t)
	f.started = func(r *fakeRun) { r.parked("c 1") }
	got := call(t, nil, "", "run", "--server", f.address, "--namespace", "team", "go")
	want := "harness approve r1 'c 1' --server " + f.address + " --namespace team"
	if got.code != 4 || !strings.Contains(got.err, want) || got.out != "" {
		t.Errorf("%+v; want %s", got, want)
	}
	f.started = func(r *fakeRun) {
		r.rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:tool_calls"}})
	}
	if got := call(t, nil, "", "run", "--server", f.address, "go"); got.code != 4 || !strings.Contains(got.err, "harness resume r2 --max-tool-calls N") {
		t.Errorf("%+v", got)
	}
}

func TestRunWithAClosedStdout(t *testing.T) {
	f := serveFake(t)
	f.started = story
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	env := func(string) string { return "" }
	for _, test := range []struct {
		args []string
		want int
	}{
		{[]string{"run", "--server", f.address, "--output", "jsonl", "go"}, 0},
		{[]string{"run", "--server", f.address, "go"}, 0},
		{[]string{"watch", "--server", f.address, "--output", "jsonl", "r1"}, 1},
		{[]string{"list", "--server", f.address}, 0},
	} {
		if code := run(test.args, stdio{in: strings.NewReader(""), out: writer, err: io.Discard}, env); code != test.want {
			t.Errorf("%q: exit code %d, want %d", test.args, code, test.want)
		}
	}
}
