package turn_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
	"github.com/harnessmesh/harnessmesh/test/kit/marktest"
)

// markedTools are tools that declare what compaction may do.
func markedTools(t fataler) *offer.Offer {
	host, client := harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
	set, err := tool.NewSet(append([]*harnessv1.ToolSpec{
		{Name: "read_file", ParametersSchema: `{"type":"object"}`, Origin: host, Annotations: &harnessv1.ToolAnnotations{
			Reads: true, ParallelSafe: true, Durability: harnessv1.Durability_DURABILITY_REPLAYABLE,
		}},
		{Name: "run_command", ParametersSchema: `{"type":"object","required":["command"]}`, Origin: host, Annotations: &harnessv1.ToolAnnotations{
			Executes: true, Durability: harnessv1.Durability_DURABILITY_ANCHORING, PreservedFields: []string{"exit_code", "command"},
		}},
		{Name: "get_weather", ParametersSchema: `{"type":"object"}`, Origin: client, Annotations: &harnessv1.ToolAnnotations{
			Durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE, PreservedFields: []string{"town", "sky"},
		}},
		{Name: "forbidden", ParametersSchema: `{"type":"object"}`, Origin: host, Annotations: &harnessv1.ToolAnnotations{
			Durability: harnessv1.Durability_DURABILITY_EPHEMERAL, PreservedFields: []string{"town"},
		}},
	}, harnesstool.Specs(harnesstool.Setting{Questions: true, WorkItems: true})...))
	if err != nil {
		t.Fatal(err)
	}
	return &offer.Offer{Set: set}
}

// everyCall are calls that end in every way.
func everyCall() []*harnessv1.ToolCall {
	return []*harnessv1.ToolCall{
		call("plan", "read_file", `{"path":"docs/PLAN.md"}`), call("run", "run_command", `{"command":"make"}`),
		call("invalid", "run_command", `{}`), call("denied", "forbidden", `{"town":"Ulm"}`), call("unknown", "reed_file", `{"path":"x"}`),
		call("item", "work_item_add", `{"title":"Look"}`), call("done", "work_complete", `{"summary":"s"}`),
		call("client", "get_weather", `{"town":"Ulm"}`), call("question", "ask_user", `{"question":"Why?"}`),
	}
}

// marking is a state in which such calls are made.
func marking() *harnessv1.Snapshot {
	s := snapshot()
	s.Config.WorkItems.Enabled = proto.Bool(true)
	s.Config.Tools.Yolo = proto.Bool(true)
	s.Config.Context.Durability = []*harnessv1.ToolDurability{{Tool: "read_file", ExternalizeTokens: proto.Uint32(300)}}
	return s
}

// end performs a turn with every call and returns its messages, by the call that they answer
// or else by their role.
func endOf(t fataler, s *harnessv1.Snapshot, change func(*worker)) (*worker, *harnessv1.Outcome, map[string]*harnessv1.Message) {
	w := newWorker(t, s, everyCall()...)
	w.state.Offer = markedTools(t)
	if change != nil {
		change(w)
	}
	outcome := w.mustEnd()
	messages := map[string]*harnessv1.Message{}
	for _, m := range append(appendedBy(w.journal), outcome.GetAppended()...) {
		if messages[m.GetToolCallId()] = m; m.GetRole() != harnessv1.Role_ROLE_TOOL {
			messages[m.GetRole().String()] = m
		}
	}
	return w, outcome, messages
}

// marksOf returns the marks of a message as text.
func marksOf(m *harnessv1.Message) string {
	text := strings.TrimPrefix(m.GetDurability().String(), "DURABILITY_")
	for _, f := range m.GetPreserved() {
		text += " " + f.GetName() + "=" + f.GetValue()
	}
	if m.GetKept() {
		text += " kept"
	}
	return text + strings.TrimPrefix(m.GetKeptContent().String(), "KEPT_CONTENT")
}

// TestEveryResultIsMarked however its call ended, with subscribers of calls or without.
func TestEveryResultIsMarked(t *testing.T) {
	for name, hooked := range map[string]bool{"plain": false, "hooked": true} {
		t.Run(name, func(t *testing.T) {
			s := marking()
			if hooked {
				s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{{
					Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE,
				}}}
			}
			_, outcome, m := endOf(t, s, nil)
			for id, want := range map[string]string{
				"plan": "REPLAYABLE path=docs/PLAN.md kept_PLAN_FILE", "run": "ANCHORING command=make", "invalid": "ANCHORING", "denied": "EPHEMERAL town=Ulm",
				"unknown": "ANCHORING", "item": "ANCHORING id=w1", "done": "ANCHORING kept_COMPLETION", "ROLE_ASSISTANT": "UNSPECIFIED kept_COMPLETION",
			} {
				if got := strings.ReplaceAll(marksOf(m[id]), "_UNSPECIFIED", ""); m[id] == nil || got != want {
					t.Errorf("%s is marked %s, want %s", id, got, want)
				}
			}
			if m["plan"].GetExternalizeTokens() != 300 || m["run"].GetExternalizeTokens() != 0 {
				t.Errorf("externalised from %d and %d tokens", m["plan"].GetExternalizeTokens(), m["run"].GetExternalizeTokens())
			}
			pending := outcome.GetStep().GetSnapshot().GetPendingToolCalls()
			if len(pending) != 2 || pending[0].GetMarks().GetDurability() != harnessv1.Durability_DURABILITY_NON_REPLAYABLE ||
				pending[0].GetMarks().GetPreserved()[0].GetValue() != "Ulm" || pending[0].GetMarks().GetPreserved()[1].GetName() != "sky" ||
				pending[1].GetMarks().GetDurability() != harnessv1.Durability_DURABILITY_NON_REPLAYABLE {
				t.Errorf("pending are %v", pending)
			}
		})
	}
}

// TestCallsThatDidNotRunAreMarked: the turn was interrupted before its calls ran, or before
// they were judged.
func TestCallsThatDidNotRunAreMarked(t *testing.T) {
	for name, c := range map[string]struct {
		at   turn.Action // during which the turn is interrupted
		want map[string]string
	}{
		"before they ran":         {turn.CheckInbox{}, map[string]string{"plan": "REPLAYABLE path=docs/PLAN.md", "run": "ANCHORING command=make", "client": "NON_REPLAYABLE town=Ulm", "done": "ANCHORING kept_COMPLETION"}},
		"before they were judged": {turn.FireHooks{}, map[string]string{"plan": "ANCHORING", "client": "ANCHORING", "done": "ANCHORING"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := marking()
			if _, hooked := c.at.(turn.FireHooks); hooked {
				s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{{
					Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE,
				}}}
			}
			_, _, m := endOf(t, s, func(w *worker) {
				w.stops = func(a turn.Action) bool { return nameOf(a) == nameOf(c.at) }
			})
			for id, want := range c.want {
				if got := strings.ReplaceAll(marksOf(m[id]), "_UNSPECIFIED", ""); m[id] == nil || got != want {
					t.Errorf("%s is marked %s, want %s", id, got, want)
				}
			}
		})
	}
}

// TestExitCodesArePreserved, and results that subscribers replace have no fields of the
// former text.
func TestExitCodesArePreserved(t *testing.T) {
	w := newWorker(t, marking(), call("run", "run_command", `{"command":"make"}`))
	w.state.Offer, w.dies = markedTools(t), 2
	_, _ = w.work()
	w.folded()
	_, appended, _ := turn.Finish(w.state.Snapshot, w.p, w.p.Calls[0], &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "no rule", IsError: true, ExitCode: proto.Int32(2),
	})
	if got := marksOf(appended[0]); got != "ANCHORING exit_code=2 command=make_UNSPECIFIED" {
		t.Errorf("marked %s", got)
	}
	s := marking()
	s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{{
		Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE,
	}}}
	_, _, m := endOf(t, s, func(w *worker) {
		w.hook = func(p hook.Point) hook.Result {
			return hook.Result{Payload: map[string]any{"result": `{"id":"hidden"}`}, Replaced: true}
		}
	})
	if got := marksOf(m["item"]); content.Text(m["item"].GetContent()) != `{"id":"hidden"}` || got != "ANCHORING id=hidden_UNSPECIFIED" {
		t.Errorf("marked %s", got)
	}
}

// TestMarksTravelWithWaitingCalls: the result of an approved call has the marks of the call,
// and so has that of a call whose end is unknown.
func TestMarksTravelWithWaitingCalls(t *testing.T) {
	marks := &harnessv1.ResultMarks{Durability: harnessv1.Durability_DURABILITY_EPHEMERAL, Preserved: []*harnessv1.PreservedField{{Name: "command", Value: "make"}}}
	s := marking()
	s.Turn = &harnessv1.TurnState{Number: 1, Open: true, CalledTools: true}
	s.PendingToolCalls = []*harnessv1.PendingCall{{
		CallId: "c", Tool: "run_command", Arguments: content.Inline("{}"), Class: harnessv1.PendingClass_PENDING_CLASS_APPROVED, TurnNumber: 1, Marks: marks,
	}}
	w := newWorker(t, s)
	w.mustEnd()
	if got := marksOf(appendedBy(w.journal)[0]); got != "EPHEMERAL command=make_UNSPECIFIED" {
		t.Errorf("the result is marked %s", got)
	}
	w = newWorker(t, s)
	w.unknown = map[string]bool{"c": true}
	if got := w.mustEnd().GetStep().GetSnapshot().GetPendingToolCalls(); len(got) != 1 || !proto.Equal(got[0].GetMarks(), marks) {
		t.Errorf("pending are %v", got)
	}
}

// TestNothingIsMarkedWithoutCompaction in a turn with every call, guidance and correction.
func TestNothingIsMarkedWithoutCompaction(t *testing.T) {
	for name, hooks := range map[string][]*harnessv1.Hook{"plain": nil, "hooked": {{
		Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE,
	}}} {
		for _, off := range []bool{true, false} {
			s := marking()
			s.TurnCount, s.Config.Guidance = 4, &harnessv1.GuidanceConfig{Enabled: proto.Bool(true), Jit: proto.Bool(true)}
			s.WorkItemLedger = &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Id: "w9", Title: "Look"}}}
			s.Definition = &harnessv1.Definition{Hooks: hooks}
			if off {
				marktest.Off(s)
			}
			w, outcome, _ := endOf(t, s, nil)
			found := marktest.In(outcome)
			for _, rec := range w.journal {
				found = append(found, marktest.In(rec)...)
				if slices.ContainsFunc(rec.GetAppended(), (*harnessv1.Message).GetKept) {
					found = append(found, "kept")
				}
			}
			if off && len(found) > 0 || !off && len(found) < 6 {
				t.Errorf("%s, compaction off: %t: the records have %v", name, off, found)
			}
		}
	}
}

// topics returns the topics of messages of the user's role, with kept ones marked.
func topics(messages ...*harnessv1.Message) []string {
	var all []string
	for _, m := range messages {
		if m.GetRole() == harnessv1.Role_ROLE_USER {
			topic := m.GetTopic()
			if m.GetKept() {
				topic += " kept"
			}
			all = append(all, topic)
		}
	}
	return all
}

// TestGuidanceHasTopics: the work items, the rules and the instruction files replace what
// was said of them before. The line that repeats nothing new does not replace the list. Changed
// instructions are kept: the system prompt has the former ones.
func TestGuidanceHasTopics(t *testing.T) {
	s := marking()
	s.TurnCount, s.Workspace, s.Config.Guidance = 4, "/w", &harnessv1.GuidanceConfig{Enabled: proto.Bool(true), Jit: proto.Bool(true)}
	s.Activity = &harnessv1.Activity{Writes: 1}
	s.InstructionFiles = []*harnessv1.FileDigest{{Path: "gone.md", Digest: "d"}}
	s.WorkItemLedger = &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Id: "w9", Title: "Look"}}}
	told := func() []string {
		p := turn.New(newState(t, s), noon)
		for range 3 {
			action := turn.Next(newState(t, s), p)
			if a, ok := action.(turn.Append); ok {
				return topics(a.Draft.Appended...)
			}
			event := turn.Event(turn.ConversationLoaded{Conversation: &conversation.Conversation{}})
			if _, ok := action.(turn.Inspect); ok {
				event = turn.Inspected{Response: &harnessv1.InspectWorkspaceResponse{InstructionFiles: []*harnessv1.InstructionFile{{Path: "AGENTS.md", Digest: "x", Content: "Count."}}}}
			}
			if err := p.Observe(newState(t, s), noon, action, event); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	}
	want := []string{"items_state kept", "instructions:AGENTS.md kept", "instructions:gone.md kept", "jit:no_reads_after_3_turns"}
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("the topics are %q, want %q", got, want)
	}
	s.ItemsShown, s.ItemsShownTurn = workitem.ShownHash(s.GetWorkItemLedger()), 4
	want[0] = "items_summary"
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("with the list shown before, the topics are %q, want %q", got, want)
	}
}

// TestCorrectionsHaveTopics of the end of a turn without a call, and of cut answers.
func TestCorrectionsHaveTopics(t *testing.T) {
	for want, c := range map[string]struct {
		text, reason string
		calls        int
	}{
		"continuation": {"text", "stop", 0}, "cut_short": {"", "length", 0}, "cut_off": {"text", "length", 1}, "calls_dropped": {"text", "tool_calls", 65},
	} {
		w := newWorker(t, marking())
		w.response = response()
		for range c.calls {
			w.response.ToolCalls = append(w.response.ToolCalls, call("", "forbidden", "{}"))
		}
		w.response.Text, w.response.FinishReason = c.text, c.reason
		outcome := w.mustEnd()
		if got := topics(append(appendedBy(w.journal), outcome.GetAppended()...)...); !slices.Contains(got, want) {
			t.Errorf("the topics are %q, want %s", got, want)
		}
	}
}
