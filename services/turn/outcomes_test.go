package turn_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// seen returns a worker whose model makes a call again that is in its conversation with the
// same result. changes are made to the state.
func seen(t *testing.T, changes ...func(*harnessv1.Snapshot)) *worker {
	s := snapshot()
	s.MessageCount = 3
	for _, change := range changes {
		change(s)
	}
	w := newWorker(t, s, call("b", "read_file", `{"path":"1"}`))
	before := &harnessv1.Message{Id: 2, TurnNumber: 1, Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{call("a", "read_file", `{"path":"1"}`)}}
	result := &harnessv1.Message{Id: 3, TurnNumber: 1, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "a", ToolName: "read_file", Content: content.Inline("result of b")}
	w.last = []*harnessv1.Message{before, result}
	return w
}

// clearedThrough returns a change: the results up to a message are cleared.
func clearedThrough(id uint64) func(*harnessv1.Snapshot) {
	return func(s *harnessv1.Snapshot) {
		s.CompactionPlan = &harnessv1.CompactionPlan{Renderer: 1, Watermarks: []*harnessv1.Watermark{{
			Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_RESULT, ThroughMessage: id,
		}}}
	}
}

// TestWhatIsNotShownIsNotSeen: an outcome is new if the view of the turn does not show the
// earlier one in full.
func TestWhatIsNotShownIsNotSeen(t *testing.T) {
	told := func(s *harnessv1.Snapshot) {
		s.ProgressTracker = &harnessv1.ProgressTracker{ToldTooLarge: true}
	}
	ring := func(s *harnessv1.Snapshot) {
		strict, loose := progress.Signature("read_file", `{"path":"1"}`, content.DigestOf(content.Inline("result of b")))
		s.DoomLoop = &harnessv1.DoomLoop{}
		progress.RecordCall(s.DoomLoop, "read_file", strict, loose)
	}
	segment := func(s *harnessv1.Snapshot) { s.ProgressTracker = &harnessv1.ProgressTracker{FirstMessage: 4} }
	for _, c := range []struct {
		name                      string
		changes                   []func(*harnessv1.Snapshot)
		distinct, fresh, repeated uint32
	}{
		{"without a plan", nil, 0, 0, 1},
		{"the result is shown", []func(*harnessv1.Snapshot){clearedThrough(2)}, 0, 0, 1},
		{"the result is cleared", []func(*harnessv1.Snapshot){clearedThrough(3)}, 1, 0, 1},
		{"the result is cleared, and the call is among the last ones", []func(*harnessv1.Snapshot){clearedThrough(3), ring}, 1, 0, 1},
		{"the result is cleared, and the model was told", []func(*harnessv1.Snapshot){clearedThrough(3), told}, 0, 0, 1},
		{"the result is summarised", []func(*harnessv1.Snapshot){func(s *harnessv1.Snapshot) {
			s.CompactionPlan = &harnessv1.CompactionPlan{Renderer: 1, Summary: &harnessv1.SummaryRef{ThroughMessage: 3}}
		}}, 1, 0, 1},
		{"the result is of the segment before", []func(*harnessv1.Snapshot){clearedThrough(3), segment}, 1, 1, 0},
		{"compaction is off", []func(*harnessv1.Snapshot){func(s *harnessv1.Snapshot) { s.Config.Context.Compaction = proto.Bool(false) }}, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := seen(t, c.changes...).mustEnd().GetStep().GetSnapshot().GetProgressTracker()
			if got.GetDistinctOutcomes() != c.distinct || got.GetFreshOutcomes() != c.fresh || got.GetRepeatedOutcomes() != c.repeated {
				t.Errorf("%v", got)
			}
		})
	}
	t.Run("twice in a turn", func(t *testing.T) {
		w := seen(t, clearedThrough(3))
		w.response = response(call("b", "read_file", `{"path":"1"}`), call("c", "nothing", `{}`), call("d", "nothing", `{}`))
		if got := w.mustEnd().GetStep().GetSnapshot().GetProgressTracker(); got.GetDistinctOutcomes() != 2 || got.GetFreshOutcomes() != 1 || got.GetRepeatedOutcomes() != 2 {
			t.Errorf("%v", got)
		}
	})
	t.Run("twice in a turn, and loops are not detected", func(t *testing.T) {
		w := seen(t, func(s *harnessv1.Snapshot) { s.Config.DoomLoop.Enabled = proto.Bool(false) })
		w.response = response(call("c", "nothing", `{}`), call("d", "nothing", `{}`))
		if got := w.mustEnd().GetStep().GetSnapshot().GetProgressTracker(); got.GetDistinctOutcomes() != 1 {
			t.Errorf("%v", got)
		}
	})
	t.Run("only among the last calls", func(t *testing.T) {
		w := seen(t, ring)
		w.last = nil
		if got := w.mustEnd().GetStep().GetSnapshot().GetProgressTracker(); got.GetDistinctOutcomes() != 0 || got.GetRepeatedOutcomes() != 1 {
			t.Errorf("%v", got)
		}
	})
	t.Run("as the caller knows it", func(t *testing.T) {
		w := seen(t, clearedThrough(3))
		var asked []uint64
		w.state.Shows = func(c *conversation.Conversation, id uint64) bool {
			asked = append(asked, id)
			return len(c.Messages) == 3
		}
		if got := w.mustEnd().GetStep().GetSnapshot().GetProgressTracker(); got.GetDistinctOutcomes() != 0 || fmt.Sprint(asked) != "[3]" {
			t.Errorf("%v, asked for %v", got, asked)
		}
	})
}

// idle is the state after three compactions with nothing but repetition between them.
func idle(s *harnessv1.Snapshot) { s.ProgressTracker = &harnessv1.ProgressTracker{IdleCompactions: 3} }

// toldTooLarge counts the guidance in a journal.
func toldTooLarge(t *testing.T, journal []*harnessv1.Record) int {
	n := 0
	for _, rec := range journal {
		for _, e := range rec.GetEvents() {
			if g := e.GetGuidanceInjected(); g.GetKind() == "too_large" {
				n++
			}
		}
		for _, m := range rec.GetAppended() {
			if content.Text(m.GetContent()) == "[harness] "+progress.TooLargeText() {
				n++
			}
		}
	}
	if n%2 != 0 {
		t.Error("the event or the message is missing")
	}
	return n / 2
}

// TestTooLargeIsReportedOnce: with the request, before repeated reads stop to count; also
// after a worker has died, and not in a turn that is skipped.
func TestTooLargeIsReportedOnce(t *testing.T) {
	w := seen(t, clearedThrough(3), idle)
	s := w.mustEnd().GetStep().GetSnapshot()
	if got := s.GetProgressTracker(); toldTooLarge(t, w.journal) != 1 || !got.GetToldTooLarge() || got.GetDistinctOutcomes() != 0 || got.GetRepeatedOutcomes() != 1 {
		t.Errorf("told %d times, %v", toldTooLarge(t, w.journal), got)
	}
	s.Phase = harnessv1.Phase_PHASE_EXECUTING
	again := newWorker(t, s, call("e", "read_file", `{"path":"1"}`))
	if again.mustEnd(); toldTooLarge(t, again.journal) != 0 {
		t.Error("the model gets the message again")
	}
	w = seen(t, clearedThrough(3), func(s *harnessv1.Snapshot) { s.ProgressTracker = &harnessv1.ProgressTracker{IdleCompactions: 2} })
	if got := w.mustEnd().GetStep().GetSnapshot().GetProgressTracker(); toldTooLarge(t, w.journal) != 0 || got.GetToldTooLarge() {
		t.Errorf("after two compactions: %v", got)
	}
	w = seen(t, idle)
	w.dies = 1
	if _, err := w.work(); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	w.dies = -1
	if got := w.mustEnd().GetStep().GetSnapshot().GetProgressTracker(); toldTooLarge(t, w.journal) != 1 || !got.GetToldTooLarge() {
		t.Errorf("after a death: %v", got)
	}
	w = seen(t, idle, func(s *harnessv1.Snapshot) { s.ToldTurn = 1 })
	if got := w.mustEnd().GetStep().GetSnapshot().GetProgressTracker(); toldTooLarge(t, w.journal) != 0 || got.GetToldTooLarge() {
		t.Errorf("in another try of a turn: %v", got)
	}
	w = seen(t, idle, func(s *harnessv1.Snapshot) { s.Hooks = &harnessv1.HookState{SkipNext: "later"} })
	if got := w.mustEnd().GetStep().GetSnapshot().GetProgressTracker(); toldTooLarge(t, w.journal) != 0 || got.GetToldTooLarge() {
		t.Errorf("in a turn that is skipped: %v", got)
	}
}
