package turn_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// readsBack returns a worker whose model reads two messages back, between other calls. The
// conversation that it loads has four messages, of which two precede the response.
func readsBack(t fataler, s *harnessv1.Snapshot) *worker {
	w := newWorker(t, s,
		call("a", "read_file", `{"path":"1"}`), call("r", "read_artifact", `{"ref":"m1"}`), call("x", "forbidden", `{}`), call("z", "read_artifact", `{"ref":"m0"}`))
	user := &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("go")}
	w.last = []*harnessv1.Message{user, user, user}
	return w
}

// resultsOf returns the results in a journal and an outcome, in order.
func resultsOf(journal []*harnessv1.Record, o *harnessv1.Outcome) string {
	var texts []string
	for _, m := range append(appendedBy(journal), o.GetAppended()...) {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			failed := ""
			if m.GetIsError() {
				failed = "!"
			}
			texts = append(texts, m.GetToolCallId()+failed+": "+content.Text(m.GetContent()))
		}
	}
	return strings.Join(texts, "\n")
}

// TestMessagesAreReadOnceTheResponseIsStored reads messages that precede the response, in the
// order of the calls, and stores what became of all calls with the results.
func TestMessagesAreReadOnceTheResponseIsStored(t *testing.T) {
	w := readsBack(t, snapshot())
	o := w.mustEnd()
	if got := strings.Join(entryNames(w.journal), " "); got != "turn_started model_responded calls_judged tools_started tool_finished" {
		t.Errorf("the journal has %s", got)
	}
	if got := fmt.Sprint(w.effects); got != "[model  read m1 of 2 read m0 of 2 run a]" {
		t.Errorf("effects %s", got)
	}
	if got := resultsOf(w.journal, o); !strings.HasPrefix(got, "r: text of m1\nx!: This call is not allowed") || !strings.HasSuffix(got, "\nz!: text of m0\na: result of a") {
		t.Errorf("results:\n%s", got)
	}
	if got := names(w.journal[2].GetEvents()); got != "tool_call tool_result tool_denied tool_call tool_error" {
		t.Errorf("events %s", got)
	}
	for _, m := range w.journal[2].GetAppended() {
		if m.GetToolCallId() == "r" && (m.GetDurability() != harnessv1.Durability_DURABILITY_REPLAYABLE || view.OriginalRef(m) != "m1") {
			t.Errorf("marked as %s, and read again with %s", m.GetDurability(), view.OriginalRef(m))
		}
	}
	s := o.GetStep().GetSnapshot()
	if a := s.GetActivity(); a.GetReads() != 0 || a.GetExplores() != 0 {
		t.Errorf("activity %v", a)
	}
	if n := s.GetProgressTracker().GetDistinctOutcomes(); n != 4 {
		t.Errorf("%d outcomes, want 4", n)
	}
}

// TestReadingContinuesFromAnyRecord kills the worker after each record.
func TestReadingContinuesFromAnyRecord(t *testing.T) {
	whole := readsBack(t, snapshot())
	want := whole.mustEnd()
	for dies := range len(whole.journal) {
		w := readsBack(t, snapshot())
		w.dies = dies
		if _, err := w.work(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.dies = -1
		if got := w.mustEnd(); !bytes.Equal(encode(t, got), encode(t, want)) || resultsOf(w.journal, got) != resultsOf(whole.journal, want) {
			t.Errorf("after %d records the turn ends as\n%v\nwant\n%v", dies, got, want)
		}
		if n := slices.IndexFunc(w.effects, func(e string) bool { return e == "model " }); dies > 1 && slices.Contains(w.effects[n+1:], "model ") {
			t.Errorf("after %d records the model gets a second request", dies)
		}
	}
}

// TestStoppedReadIsRefused: every call of a turn that is interrupted while messages are read
// has a result.
func TestStoppedReadIsRefused(t *testing.T) {
	w := readsBack(t, snapshot())
	w.stops = func(action turn.Action) bool { _, reads := action.(turn.ReadMessages); return reads }
	o := w.mustEnd()
	got := resultsOf(w.journal, o)
	if !o.GetStep().GetTurnComplete().GetInterrupted() || strings.Count(got, "was interrupted before this call had run") != 4 {
		t.Errorf("results:\n%s", got)
	}
}

// TestRulesOfReading: no mode and no request for approval keeps a model from reading back; a
// rule that denies does, and so does a subscriber. Subscribers can replace what is read.
func TestRulesOfReading(t *testing.T) {
	s := snapshot()
	s.Mode = "plan"
	s.ToolRules = []*harnessv1.ToolRule{rule("*", harnessv1.ToolDecision_TOOL_DECISION_ASK)}
	reading := func(s *harnessv1.Snapshot) *worker {
		return newWorker(t, s, call("r", "read_artifact", `{"ref":"m1"}`))
	}
	w := reading(s)
	w.mustEnd()
	if got := resultsOf(w.journal, nil); got != "r: text of m1" {
		t.Errorf("asked for: %s", got)
	}
	s = snapshot()
	s.ToolRules = []*harnessv1.ToolRule{rule("read_artifact", harnessv1.ToolDecision_TOOL_DECISION_DENY)}
	w = reading(s)
	w.mustEnd()
	if got := resultsOf(w.journal, nil); !strings.HasPrefix(got, "r!: This call is not allowed") || fmt.Sprint(w.effects) != "[model ]" {
		t.Errorf("denied by a rule: %s, %v", got, w.effects)
	}
	s = snapshot()
	s.Config.Hooks = &harnessv1.HookConfig{Enabled: proto.Bool(true)}
	s.Definition = &harnessv1.Definition{}
	for _, topic := range []harnessv1.HookTopic{harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL} {
		s.Definition.Hooks = append(s.Definition.Hooks, &harnessv1.Hook{Id: topic.String(), Topic: topic, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE})
	}
	w = reading(s)
	w.hook = func(p hook.Point) hook.Result {
		if p.Topic == harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL {
			return hook.Result{Replaced: true, Payload: map[string]any{"arguments": map[string]any{"ref": "m2"}}}
		}
		return hook.Result{Replaced: true, Payload: map[string]any{"result": fmt.Sprint("after ", p.Payload["result"])}}
	}
	w.mustEnd()
	if got := resultsOf(w.journal, nil); got != "r: after text of m2" {
		t.Errorf("replaced: %s, %v", got, w.effects)
	}
	w = reading(s)
	w.hook = func(hook.Point) hook.Result {
		return hook.Result{Action: harnessv1.HookAction_HOOK_ACTION_DENY, HookID: "h", Reason: "private"}
	}
	w.mustEnd()
	if got := resultsOf(w.journal, nil); got != "r!: This call is not allowed: private" {
		t.Errorf("denied by a subscriber: %s, %v", got, w.effects)
	}
}
