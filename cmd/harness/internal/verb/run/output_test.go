package run_test

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/cli"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// story is a run in which a good deal happens.
func story(r *harnesstest.Run) {
	ev := func(turn uint32, e *harnessv1.Event) {
		e.TurnNumber = turn
		r.Event(e)
	}
	delta := func(turn, attempt, try uint32, offset uint64, text string) {
		r.Delta(&harnessv1.Delta{TurnNumber: turn, Attempt: attempt, Try: try, Offset: offset, Text: text})
	}
	ev(0, &harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{Goal: "Mend it.", Segment: 1}}})
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	delta(1, 1, 1, 0, "I'll lo")
	delta(1, 1, 1, 0, "I'll lo") // delivered twice
	ev(1, &harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: &harnessv1.ModelRetry{Try: 1, Error: "the stream was cut", Wait: durationpb.New(500 * time.Millisecond)}}})
	r.Delta(&harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 2, Reasoning: "Where is"})
	r.Delta(&harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 2, ReasoningOffset: 8, Reasoning: " it?", Text: "I"})
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
	r.Rest(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true, TurnCount: 2, ToolCalls: 4,
		Answer: content.Inline("Not streamed."), Summary: content.Inline("It is mended."),
		Usage:    &harnessv1.Usage{InputTokens: 12345, OutputTokens: 1267, CostMicroUsd: 12300, ReasoningTokens: 1200, CacheWriteTokens: 9000},
		Reason:   &harnessv1.StopReason{Kind: "agent_done", Message: "The agent is done."},
		Duration: durationpb.New(65 * time.Second),
	})
}

func TestWhatARunPrints(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = story
	for _, output := range []string{"text", "json", "jsonl"} {
		got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--run-id", "r-"+output, "--workspace", "/w", "--model", "openai:m", "--output", output, "Mend it.")
		if got.Code != 0 {
			t.Fatalf("%s: %+v", output, got)
		}
		harnesstest.Golden(t, output+".out", got.Out)
		harnesstest.Golden(t, output+".err", got.Err)
	}
	// A locale without UTF-8 gets ASCII only.
	got := harnesstest.Call(t, map[string]string{"LANG": "C"}, "", "run", "--server", f.Address, "--workspace", "/w", "Mend it.")
	if strings.IndexFunc(got.Err, func(r rune) bool { return r > 127 && r != '�' }) >= 0 {
		t.Errorf("beyond ASCII: %s", got.Err)
	}
}

func TestEveryLineOfJSONLIsAnObjectAndTheLastIsTheResult(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = story
	got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--output", "jsonl", "go")
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	for i, line := range lines {
		var object struct{ Type string }
		if err := json.Unmarshal([]byte(line), &object); err != nil || object.Type == "" || (object.Type == "result") != (i == len(lines)-1) {
			t.Errorf("line %d: %s: %v", i, line, err)
		}
	}
}

func TestNoStreamHasNoDeltas(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = story
	got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--output", "jsonl", "--no-stream", "go")
	if got.Code != 0 || strings.Contains(got.Out, `"delta"`) || f.Starts[0].GetSpec().GetConfig().GetModel().Streaming == nil {
		t.Errorf("%+v", got)
	}
}

func TestABrokenConnectionShowsNothingTwiceAndLosesNothing(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = func(r *harnesstest.Run) {
		for i := range 5 {
			r.Event(&harnessv1.Event{TurnNumber: uint32(i + 1), Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
		}
		r.Done()
	}
	f.Cuts = 3
	got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--output", "jsonl", "go")
	if got.Code != 0 || strings.Count(got.Out, "step.start") != 5 || strings.Count(got.Err, "unavailable") == 0 {
		t.Errorf("%+v", got)
	}
	last := 0
	for _, line := range strings.Split(strings.TrimSpace(got.Out), "\n") {
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
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = func(r *harnesstest.Run) {
		r.Rest(&harnessv1.HarnessResult{
			Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true,
			Answer: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d1", Size: 9000, Preview: "the"}}},
		})
	}
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "go"); got.Out != "the whole text of d1\n" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--output", "json", "go"); !strings.Contains(got.Out, `"answer":"the whole text of d1"`) {
		t.Errorf("%+v", got)
	}
}

func TestHintsOfAParkedRun(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = func(r *harnesstest.Run) { r.Parked("c 1") }
	got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--namespace", "team", "go")
	want := "harness approve r1 'c 1' --server " + f.Address + " --namespace team"
	if got.Code != 4 || !strings.Contains(got.Err, want) || got.Out != "" {
		t.Errorf("%+v; want %s", got, want)
	}
	f.Started = func(r *harnesstest.Run) {
		r.Rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:tool_calls"}})
	}
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "go"); got.Code != 4 || !strings.Contains(got.Err, "harness resume r2 --max-tool-calls N") {
		t.Errorf("%+v", got)
	}
}

func TestRunWithAClosedStdout(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = story
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
		{[]string{"run", "--server", f.Address, "--output", "jsonl", "go"}, 0},
		{[]string{"run", "--server", f.Address, "go"}, 0},
		{[]string{"watch", "--server", f.Address, "--output", "jsonl", "r1"}, 1},
		{[]string{"list", "--server", f.Address}, 0},
	} {
		if code := cli.Run(test.args, console.Process{In: strings.NewReader(""), Out: writer, Err: io.Discard}, env); code != test.want {
			t.Errorf("%q: exit code %d, want %d", test.args, code, test.want)
		}
	}
}
