package turn_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

const (
	run     = harnessv1.CallDisposition_CALL_DISPOSITION_RUN
	ask     = harnessv1.CallDisposition_CALL_DISPOSITION_ASK
	harness = harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS
	denied  = harnessv1.CallDisposition_CALL_DISPOSITION_DENIED
	invalid = harnessv1.CallDisposition_CALL_DISPOSITION_INVALID
)

func tools(t fataler) *tool.Set {
	const path = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	host := harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST
	set, err := tool.NewSet(append([]*harnessv1.ToolSpec{
		{Name: "read_file", ParametersSchema: path, Origin: host, Annotations: &harnessv1.ToolAnnotations{Idempotent: true, ParallelSafe: true}},
		{Name: "write_file", ParametersSchema: path, Origin: host, Annotations: &harnessv1.ToolAnnotations{Writes: true}},
		{Name: "run_command", ParametersSchema: `{"type":"object"}`, Origin: host, Annotations: &harnessv1.ToolAnnotations{Executes: true}},
		{Name: "forbidden", ParametersSchema: `{"type":"object"}`, Origin: host},
	}, harnesstool.Specs(harnesstool.Setting{Questions: true, Compaction: true})...))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// snapshot is the state before a turn.
func snapshot() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING, MessageCount: 2, MaxTurns: 50,
		Workflow: workflow.Default(), Config: runstate.Resolve(&harnessv1.LoopConfig{Guidance: &harnessv1.GuidanceConfig{Enabled: proto.Bool(false), Jit: proto.Bool(false)}}, 0),
		ToolRules: []*harnessv1.ToolRule{{Name: "forbidden", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}},
	}
}

func response(calls ...*harnessv1.ToolCall) *model.Response {
	return &model.Response{
		Text: "text", ToolCalls: calls, FinishReason: "stop", Usage: &harnessv1.Usage{InputTokens: 100, OutputTokens: 10},
	}
}

// TestCallIsDecided checks what becomes of each call, and which result it has.
func TestCallIsDecided(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings func(*harnessv1.Snapshot)
		call     *harnessv1.ToolCall
		want     harnessv1.CallDisposition
		told     string // in its result; empty means that it has none yet
		events   string
	}{
		{"a tool", nil, call("a", "read_file", `{"path":"x"}`), run, "", ""},
		{"a tool that asks", nil, call("a", "run_command", `{}`), ask, "", "tool_call"},
		{"granted", func(s *harnessv1.Snapshot) { s.GrantedTools = []string{"run_command"} }, call("a", "run_command", `{}`), run, "", ""},
		{"yolo", func(s *harnessv1.Snapshot) { s.Config.Tools.Yolo = proto.Bool(true) }, call("a", "run_command", `{}`), run, "", ""},
		{"denied", nil, call("a", "forbidden", `{}`), denied, "not allowed", "tool_denied"},
		{"denied in yolo", func(s *harnessv1.Snapshot) { s.Config.Tools.Yolo = proto.Bool(true) }, call("a", "forbidden", `{}`), denied, "not allowed", "tool_denied"},
		{"work_complete", nil, call("a", "work_complete", `{"summary":"s"}`), harness, "Recorded", "tool_call tool_result"},
		{"its alias", nil, call("a", "task_complete", `{"summary":"s"}`), harness, "Recorded", "tool_call tool_result"},
		{"work_complete is never asked for", func(s *harnessv1.Snapshot) {
			s.ToolRules = []*harnessv1.ToolRule{{Name: "*", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}}
		}, call("a", "work_complete", `{"summary":"s"}`), harness, "Recorded", "tool_call tool_result"},
		{"work_complete without a summary", nil, call("a", "work_complete", `{}`), invalid, "summary", "tool_call tool_error"},
		{"an unknown tool", nil, call("a", "read_fil", `{}`), invalid, "read_file", "tool_call tool_error"},
		{"a tool like no other", nil, call("a", "zzzzzzzzz", `{}`), invalid, "offered", "tool_call tool_error"},
		{"no name", nil, call("a", "", `{}`), invalid, "no tool", "tool_call tool_error"},
		{"broken arguments", nil, call("a", "read_file", `{"path":`), invalid, `"required":["path"]`, "tool_call tool_error"},
		{"invalid arguments", nil, call("a", "read_file", `{"path":7}`), invalid, "path", "tool_call tool_error"},
		{"arguments that are no object", nil, call("a", "read_file", `[1]`), invalid, "not a JSON object", "tool_call tool_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := snapshot()
			if c.settings != nil {
				c.settings(s)
			}
			a := respond(t, s, response(c.call))
			prepared := a.GetJournal().GetModelResponded().GetCalls()[0]
			if prepared.GetDisposition() != c.want || prepared.GetCallId() != "a" {
				t.Errorf("prepared %v", prepared)
			}
			switch {
			case c.told == "" && len(a.Appended) != 1:
				t.Errorf("answered with %v", a.Appended[1])
			case c.told != "" && (len(a.Appended) != 2 || !strings.Contains(content.Text(a.Appended[1].GetContent()), c.told) ||
				a.Appended[1].GetIsError() != (c.want != harness)):
				t.Errorf("answered with %v", a.Appended[1:])
			}
			if got := names(a.Events); got != strings.TrimSpace("model_response "+c.events) {
				t.Errorf("events %s", got)
			}
		})
	}
}

func names(events []*harnessv1.Event) string {
	var all []string
	for _, e := range events {
		r := e.ProtoReflect()
		all = append(all, string(r.WhichOneof(r.Descriptor().Oneofs().ByName("event")).Name()))
	}
	return strings.Join(all, " ")
}

// TestCutOffResponseLosesItsCalls: the last of them may be incomplete.
func TestCutOffResponseLosesItsCalls(t *testing.T) {
	r := response(call("a", "write_file", `{"path":"x"}`))
	r.FinishReason = "length"
	a := respond(t, snapshot(), r)
	if len(a.GetJournal().GetModelResponded().GetCalls()) > 0 || len(a.Appended[0].GetToolCalls()) > 0 {
		t.Error("a call was kept")
	}
	if len(a.Appended) != 2 || a.Appended[1].GetKind() != harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE {
		t.Errorf("the messages are %v", a.Appended[1:])
	}
}

// TestManyApprovalsAreRefused: calls over the limit of those that may wait are refused.
func TestManyApprovalsAreRefused(t *testing.T) {
	s := snapshot()
	const former = runstate.MaxPending - 20
	for i := range former {
		s.PendingToolCalls = append(s.PendingToolCalls, &harnessv1.PendingCall{CallId: fmt.Sprint("former-", i)})
	}
	var calls []*harnessv1.ToolCall
	for i := range 30 {
		calls = append(calls, call(fmt.Sprint(i), "run_command", `{}`))
	}
	count := map[harnessv1.CallDisposition]int{}
	for _, c := range respond(t, s, response(calls...)).GetJournal().GetModelResponded().GetCalls() {
		count[c.GetDisposition()]++
	}
	if count[ask] != runstate.MaxPending-former || count[invalid] != 10 {
		t.Errorf("prepared %v", count)
	}
}

// TestManyCallsAreCut: a response has a bound, which a message to the model names.
func TestManyCallsAreCut(t *testing.T) {
	var calls []*harnessv1.ToolCall
	for i := range 100 {
		calls = append(calls, call(fmt.Sprint(i), "read_file", `{"path":"x"}`))
	}
	a := respond(t, snapshot(), response(calls...))
	if n := len(a.Appended[0].GetToolCalls()); n != 64 || len(a.GetJournal().GetModelResponded().GetCalls()) != n {
		t.Errorf("%d calls were taken", n)
	}
	if last := a.Appended[len(a.Appended)-1]; last.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE || !strings.Contains(last.GetContent().GetInline(), "100") {
		t.Errorf("the last message is %v", last)
	}
}

// TestLongNamesAreCut: long names and ids cannot be moved to blobs.
func TestLongNamesAreCut(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	rec := respond(t, snapshot(), response(call(long, long, `{"path":"`+long+`"}`), call("b", "read_file", `{"`+long+`":1}`)))
	for _, m := range rec.GetAppended() {
		m.Content = nil // moved to blobs
		for _, c := range m.GetToolCalls() {
			c.Arguments = nil
		}
	}
	for _, e := range rec.GetEvents() {
		if c := e.GetToolCall(); c != nil {
			c.Arguments = nil
		}
	}
	if size := proto.Size(rec); size > 8<<10 {
		t.Errorf("%d bytes of the record cannot be moved", size)
	}
}

// TestResponseToGarbage: whatever the model writes, every call has a unique id, is
// decided, and has a result exactly if nothing is left to run for it.
func TestResponseToGarbage(t *testing.T) {
	garbage := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", " ", "a", "b", "call_1_0", "call_1_1", "call_1_1_0", "\xff\xfe", "\x00"}))
	name := rapid.OneOf(garbage, rapid.SampledFrom([]string{"read_file", "write_file", "run_command", "forbidden", "work_complete", "task_complete", "Read-File"}))
	arguments := rapid.OneOf(garbage, rapid.SampledFrom([]string{`{}`, `{"path":"a"}`, `{"summary":"s"}`, `{"path":`, `null`, `1e999999`, `[]`, `{"path":"\ud800"}`}))
	rapid.Check(t, func(t *rapid.T) {
		r := &model.Response{
			Text:         garbage.Draw(t, "text"),
			FinishReason: rapid.SampledFrom([]string{"stop", "tool_calls", "length", ""}).Draw(t, "finish"),
		}
		for range rapid.IntRange(0, 8).Draw(t, "calls") {
			c := call(garbage.Draw(t, "id"), name.Draw(t, "name"), arguments.Draw(t, "arguments"))
			if rapid.Bool().Draw(t, "bare") {
				c.Arguments = nil
			}
			r.ToolCalls = append(r.ToolCalls, c)
		}
		known := map[string]bool{"a": true, "call_1_1": true}
		s := snapshot()
		before := proto.CloneOf(s)
		rec, again := respond(t, s, r, "a", "call_1_1"), respond(t, s, r, "a", "call_1_1")
		if !proto.Equal(s, before) {
			t.Fatal("the snapshot was changed")
		}
		if !proto.Equal(rec, again) {
			t.Fatal("judged otherwise the second time")
		}
		if _, err := proto.Marshal(rec); err != nil {
			t.Fatal("the record cannot be stored:", err)
		}
		message, prepared := rec.Appended[0], rec.GetJournal().GetModelResponded().GetCalls()
		if len(prepared) != len(message.GetToolCalls()) {
			t.Fatalf("%d calls, %d decided on", len(message.GetToolCalls()), len(prepared))
		}
		results := map[string]int{}
		for _, m := range rec.Appended[1:] {
			if m.GetRole() == harnessv1.Role_ROLE_TOOL {
				results[m.GetToolCallId()]++
			}
		}
		seen := map[string]bool{}
		for i, c := range message.GetToolCalls() {
			id, p := c.GetId(), prepared[i]
			if id == "" || seen[id] || known[id] || len(id) > 64 || !utf8.ValidString(id) || c.GetName() == "" || p.GetCallId() != id {
				t.Fatalf("call %d is %v, prepared %v", i, c, p)
			}
			seen[id] = true
			want := 1
			if p.GetDisposition() == run || p.GetDisposition() == ask {
				want = 0
			}
			if results[id] != want || p.GetDisposition() == 0 {
				t.Fatalf("call %d is %s and has %d results", i, p.GetDisposition(), results[id])
			}
		}
	})
}
