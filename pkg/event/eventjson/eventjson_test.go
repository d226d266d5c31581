package eventjson_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, lines ...[]byte) {
	t.Helper()
	var got bytes.Buffer
	for _, line := range lines {
		if !json.Valid(line) {
			t.Fatalf("not JSON: %s", line)
		}
		got.Write(line)
		got.WriteByte('\n')
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s differs\n got: %s\nwant: %s", path, got.Bytes(), want)
	}
}

func text(s string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: s}}
}

func blob() *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{
		Digest: strings.Repeat("ab", 32), Size: 9000, Preview: "the <first> bytes",
	}}}
}

func event(set func(*harnessv1.Event)) *harnessv1.Event {
	e := &harnessv1.Event{
		Id: "12-0", Version: 12, TurnNumber: 1, MaxTurns: 50,
		Time: timestamppb.New(time.Date(2026, 11, 21, 10, 0, 0, 120_000_000, time.UTC)),
	}
	set(e)
	return e
}

func must(t *testing.T) func([]byte, error) []byte {
	return func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// eachCase calls do with an empty event of each case of the oneof.
func eachCase(t *testing.T, do func(f protoreflect.FieldDescriptor, e *harnessv1.Event)) {
	t.Helper()
	cases := (&harnessv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("event").Fields()
	for i := range cases.Len() {
		e := event(func(*harnessv1.Event) {})
		m := e.ProtoReflect()
		m.Set(cases.Get(i), m.NewField(cases.Get(i)))
		do(cases.Get(i), e)
	}
}

func TestEveryEventHasTheNameOfItsComment(t *testing.T) {
	source, err := os.ReadFile("../../../proto/harness/v1/event.proto")
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^    // (\S+)\n    \w+ (\w+) = \d+ `).FindAllStringSubmatch(string(source), -1) {
		comments[m[2]] = m[1]
	}
	seen := map[string]bool{}
	eachCase(t, func(f protoreflect.FieldDescriptor, e *harnessv1.Event) {
		name := eventjson.Type(e)
		if name != comments[string(f.Name())] {
			t.Errorf("%s is %q here and %q in the proto", f.Name(), name, comments[string(f.Name())])
		}
		if seen[name] {
			t.Errorf("%q names two events", name)
		}
		seen[name] = true
	})
}

func TestEmptyEventsHaveTheirWholeShape(t *testing.T) {
	var lines [][]byte
	eachCase(t, func(_ protoreflect.FieldDescriptor, e *harnessv1.Event) {
		lines = append(lines, must(t)(eventjson.Event(e)))
	})
	golden(t, "empty.jsonl", lines...)
}

func TestEvents(t *testing.T) {
	call := func(arguments string) *harnessv1.Event {
		return event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: "c1", Tool: "read_file", Arguments: text(arguments)}}
		})
	}
	events := []*harnessv1.Event{
		call(`{"path": "a & b.txt", "n": 12345678901234567890}`),
		call(`{"path": "cut`),
		call(``),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{
				CallId: "c1", Tool: "read_file", Result: blob(), Duration: durationpb.New(1500 * time.Microsecond),
			}}
		}),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_SessionComplete{SessionComplete: &harnessv1.SessionComplete{
				Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true,
				Reason: &harnessv1.StopReason{Kind: "agent_done", Message: "The agent is done.", Details: &harnessv1.StopDetails{Turn: 3}},
			}}
		}),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{
				Model: "openai:m", Usage: &harnessv1.Usage{InputTokens: math.MaxUint64}, Text: text("\"quoted\"\n"), Latency: durationpb.New(2 * time.Second),
			}}
		}),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_BudgetWarn{BudgetWarn: &harnessv1.BudgetWarn{Budget: "cost", Limit: 0.5, Used: math.Inf(1)}}
		}),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{Decision: harnessv1.ApprovalDecision(77)}}
		}),
		event(func(*harnessv1.Event) {}),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_WorkItemChanged{WorkItemChanged: &harnessv1.WorkItemChanged{
				Change: "added", Finished: 1, Total: 2,
				Item: &harnessv1.WorkItem{Id: "w2", Title: "Write it", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_PENDING,
					Priority: harnessv1.WorkItemPriority_WORK_ITEM_PRIORITY_HIGH, Role: harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE},
			}}
		}),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_WorkItemChanged{WorkItemChanged: &harnessv1.WorkItemChanged{
				Change: "artifact", Item: &harnessv1.WorkItem{Id: "w3", Control: &harnessv1.ControlVerdict{FailedChecks: []string{"links: one is dead"}}},
			}}
		}),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_ContractEvaluated{ContractEvaluated: &harnessv1.ContractEvaluated{
				Coverage: &harnessv1.Coverage{Met: 1, Total: 2, Unmet: []string{"cites"}},
				Requirements: []*harnessv1.RequirementCoverage{
					{RequirementId: "report", Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET, Confidence: 1,
						Evidence: []*harnessv1.Evidence{{Kind: "file", Digest: strings.Repeat("cd", 32), Text: "report.md", TurnNumber: 4}}},
					{RequirementId: "cites", Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET, Why: "no match"},
				},
			}}
		}),
		event(func(e *harnessv1.Event) {
			e.Event = &harnessv1.Event_StopRejected{StopRejected: &harnessv1.StopRejected{
				Kind: "contract_not_satisfied", Message: "Not yet.", Count: 1,
				Gap: &harnessv1.GapReport{
					UnmetRequirements:   []*harnessv1.UnmetRequirement{{Id: "cites", Description: "It cites a source", Why: "no match"}},
					UnansweredQuestions: []string{"q1"}, Suggestions: []string{"Cite one."},
				},
			}}
		}),
	}
	var lines [][]byte
	for _, e := range events {
		lines = append(lines, must(t)(eventjson.Event(e)))
	}
	piece := &harnessv1.Delta{TurnNumber: 2, Attempt: 1, Try: 1, Offset: 7, Text: "wörld", ReasoningOffset: 9, Reasoning: "hm"}
	lines = append(lines, must(t)(eventjson.Delta(piece)), must(t)(eventjson.ReasoningDelta(piece)))
	golden(t, "events.jsonl", lines...)
}

func TestResults(t *testing.T) {
	parked := &harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "approval", Message: "A call waits."},
		Answer: text("so far"), TurnCount: 2, ToolCalls: 3, Usage: &harnessv1.Usage{InputTokens: 900, OutputTokens: 20},
		Duration: durationpb.New(1234 * time.Millisecond),
		Pending: []*harnessv1.PendingCall{{
			CallId: "c9", Tool: "run_command", Arguments: text(`{"command":"make"}`), Kind: "approval", Why: "It runs a command.",
			Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, TurnNumber: 2, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Deadline: timestamppb.New(time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)),
		}},
		WakeAt: timestamppb.New(time.Date(2026, 11, 28, 10, 0, 0, 500_000_000, time.UTC)),
	}
	done := &harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true,
		Deliverables: []*harnessv1.Deliverable{
			{ItemId: "w1", Title: "Report", Content: text("# Report\n")}, {ItemId: "w4", Title: "Table", Content: blob()},
		},
		Coverage: &harnessv1.Coverage{Met: 3, Total: 5, Unmet: []string{"cites", "tests"}},
	}
	golden(t, "results.jsonl",
		must(t)(eventjson.Result("r1", &harnessv1.HarnessResult{})),
		must(t)(eventjson.Result("r1", done)),
		must(t)(eventjson.Result("r1", parked)),
		must(t)(eventjson.ResultLine("r1", parked)),
		must(t)(eventjson.Pending(parked.GetPending())),
		must(t)(eventjson.Pending(nil)),
		eventjson.Time(parked.GetWakeAt()),
		eventjson.Time(nil))
}

// fields returns the JSON keys of a message's fields.
func fields(d protoreflect.MessageDescriptor) (keys []string) {
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		key := string(f.Name())
		if f.Message() != nil && f.Message().FullName() == "google.protobuf.Duration" {
			key += "_ms"
		}
		keys = append(keys, key)
	}
	return keys
}

func object(t *testing.T, line []byte) (keys map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(line, &keys); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return keys
}

func TestEveryFieldHasItsJSON(t *testing.T) {
	has := func(what string, line []byte, keys []string) {
		t.Helper()
		got := object(t, line)
		for _, key := range keys {
			if _, ok := got[key]; !ok {
				t.Errorf("%s has no %s: %s", what, key, line)
			}
		}
	}
	eachCase(t, func(f protoreflect.FieldDescriptor, e *harnessv1.Event) {
		line := must(t)(eventjson.Event(e))
		has(string(f.Name()), object(t, line)["data"], fields(f.Message()))
	})
	// The keys of the reasoning are those of the text; output of commands and alerts have separate lines.
	pieces := slices.DeleteFunc(fields((&harnessv1.Delta{}).ProtoReflect().Descriptor()), func(key string) bool {
		return strings.HasPrefix(key, "reasoning") || key == "tool_output" || key == "alert"
	})
	has("alert.delta", must(t)(eventjson.Alert(&harnessv1.Delta{RunId: "a-1", Alert: &harnessv1.QualityAlert{}})),
		append(fields((&harnessv1.QualityAlert{}).ProtoReflect().Descriptor()), "turn_number", "attempt", "try", "run_id"))
	has("delta", must(t)(eventjson.Delta(&harnessv1.Delta{RunId: "a-1"})), pieces)
	has("reasoning.delta", must(t)(eventjson.ReasoningDelta(&harnessv1.Delta{RunId: "a-1"})), pieces)
	has("result", must(t)(eventjson.Result("r", &harnessv1.HarnessResult{})), fields((&harnessv1.HarnessResult{}).ProtoReflect().Descriptor()))
	has("run", must(t)(eventjson.Run(&harnessv1.Run{})), fields((&harnessv1.Run{}).ProtoReflect().Descriptor()))
	pending := must(t)(eventjson.Pending([]*harnessv1.PendingCall{{RunId: "a-1"}}))
	has("pending call", bytes.Trim(pending, "[]"), fields((&harnessv1.PendingCall{}).ProtoReflect().Descriptor()))
}

// TestEveryFieldIsDocumented: docs/events.md has every event and every field of its
// data.
func TestEveryFieldIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if name, _, found := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); found && strings.HasPrefix(line, "| `") {
			rows[name] += line
		}
	}
	eachCase(t, func(f protoreflect.FieldDescriptor, e *harnessv1.Event) {
		row := rows[eventjson.Type(e)]
		if row == "" {
			t.Errorf("docs/events.md has no row for %s", eventjson.Type(e))
		}
		for _, key := range fields(f.Message()) {
			if !strings.Contains(row, "`"+key+"`") {
				t.Errorf("docs/events.md: the row of %s does not name %s", eventjson.Type(e), key)
			}
		}
	})
	for name, d := range map[string]protoreflect.MessageDescriptor{
		"result": (&harnessv1.HarnessResult{}).ProtoReflect().Descriptor(), "pending call": (&harnessv1.PendingCall{}).ProtoReflect().Descriptor(),
	} {
		for _, key := range fields(d) {
			if !regexp.MustCompile(`\b` + key + `\b`).Match(page) {
				t.Errorf("docs/events.md does not name %s of the %s", key, name)
			}
		}
	}
}

func TestRunsAndOtherMessages(t *testing.T) {
	golden(t, "messages.jsonl",
		must(t)(eventjson.Run(&harnessv1.Run{RunId: "r1", Namespace: "default", Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Goal: "g"})),
		must(t)(eventjson.Message(&harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(0)}, Model: &harnessv1.ModelConfig{}})),
		must(t)(eventjson.Message(&harnessv1.InboxItem{Id: "i", Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{Reason: "stop"}}})))
}

func TestOpaqueBytesAreNotWritten(t *testing.T) {
	thought := &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: text("hm")}}
	inline := &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(`"payload"`)}}
	line := must(t)(eventjson.Message(&harnessv1.Message{Parts: []*harnessv1.Part{
		{Kind: thought, Opaque: inline}, {Kind: &harnessv1.Part_Call{Call: 0}, Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Blob{Blob: blob().GetBlob()}}},
	}}))
	if got := string(object(t, line)["parts"]); got != `[{"reasoning":{"text":"hm"}},{"call":0}]` {
		t.Errorf("parts are %s", got)
	}
}

func TestNilIsRefused(t *testing.T) {
	for name, encode := range map[string]func() ([]byte, error){
		"event":   func() ([]byte, error) { return eventjson.Event(nil) },
		"delta":   func() ([]byte, error) { return eventjson.Delta(nil) },
		"thought": func() ([]byte, error) { return eventjson.ReasoningDelta(nil) },
		"result":  func() ([]byte, error) { return eventjson.Result("r", nil) },
		"run":     func() ([]byte, error) { return eventjson.Run(nil) },
		"pending": func() ([]byte, error) { return eventjson.Pending([]*harnessv1.PendingCall{nil}) },
		"message": func() ([]byte, error) { return eventjson.Message((*harnessv1.Snapshot)(nil)) },
	} {
		if _, err := encode(); err == nil {
			t.Errorf("%s: nil was taken", name)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1e999}`, `null`, "\x00", `"\ud800"`, ` [1, 2] `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		line, err := eventjson.Event(&harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{Arguments: text(arguments)}}})
		if err != nil || !json.Valid(line) || bytes.ContainsRune(line, '\n') {
			t.Fatalf("%q became %q, %v", arguments, line, err)
		}
	})
}
