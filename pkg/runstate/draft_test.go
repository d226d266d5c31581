package runstate_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func reflecting() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{Phase: harnessv1.Phase_PHASE_REFLECTING, MaxTurns: 9, MessageCount: 4}
}

func TestDraftStampsEvents(t *testing.T) {
	s := reflecting()
	d := runstate.NewStep("repair", s, 3)
	d.Emit(event.PlanDraft("a"), event.PlanCommit("a"))
	s.MaxTurns, d.Turn = 12, 4
	d.Emit(event.RunCancelled("", ""))
	for i, want := range []struct{ turn, limit uint32 }{{3, 9}, {3, 9}, {4, 12}} {
		if e := d.Events[i]; e.GetTurnNumber() != want.turn || e.GetMaxTurns() != want.limit {
			t.Errorf("event %d is of turn %d of %d, want %d of %d", i, e.GetTurnNumber(), e.GetMaxTurns(), want.turn, want.limit)
		}
	}
}

func TestDraftOfStepNumbersMessages(t *testing.T) {
	s := reflecting()
	d := runstate.NewStep("repair", s, 3)
	d.Append(&harnessv1.Message{Content: content.Inline("abc")}, &harnessv1.Message{Content: content.Inline("d")})
	d.AppendTo(2, &harnessv1.Message{Content: content.Inline("e")})
	for i, want := range []struct {
		id   uint64
		turn uint32
	}{{5, 3}, {6, 3}, {7, 2}} {
		if m := d.Appended[i]; m.GetId() != want.id || m.GetTurnNumber() != want.turn {
			t.Errorf("message %d has id %d and turn %d, want %d and %d", i, m.GetId(), m.GetTurnNumber(), want.id, want.turn)
		}
	}
	if s.GetMessageCount() != 7 || s.GetTokenBudget().GetUnreportedBytes() != 5 {
		t.Errorf("the state counts %d messages and %d bytes, want 7 and 5", s.GetMessageCount(), s.GetTokenBudget().GetUnreportedBytes())
	}
}

func TestDraftOfEntryLeavesState(t *testing.T) {
	s := reflecting()
	before := proto.CloneOf(s)
	d := runstate.NewEntry(&harnessv1.Journal{}, s, 3)
	d.Append(&harnessv1.Message{Content: content.Inline("abc")})
	d.Emit(event.PlanDraft("a"))
	if !proto.Equal(s, before) {
		t.Errorf("the state has become %v", s)
	}
	if m := d.Appended[0]; m.GetId() != 0 || m.GetTurnNumber() != 3 {
		t.Errorf("the message has id %d and turn %d, want no id and 3", m.GetId(), m.GetTurnNumber())
	}
	if d.Step != nil || d.Events[0].GetMaxTurns() != 9 {
		t.Errorf("the draft is %+v", d)
	}
}

func TestDraftAppendsNotesAsGuidance(t *testing.T) {
	d := runstate.NewStep("repair", reflecting(), 3)
	d.GuideNotes([]hook.Note{{HookID: "a", Text: "one"}, {HookID: "b", Text: "two"}})
	if n := len(d.Appended); n != 2 || len(d.Events) != 2 {
		t.Fatalf("%d messages and %d events, want 2 of each", n, len(d.Events))
	}
	m, e := d.Appended[1], d.Events[1].GetGuidanceInjected()
	if content.Text(m.GetContent()) != "[harness] two" || m.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE {
		t.Errorf("the message is %v", m)
	}
	if e.GetKind() != "hook" || e.GetRuleId() != "b" || e.GetText() != "two" {
		t.Errorf("the event is %v", e)
	}
}

func TestDraftAppliesEffectsOfHooks(t *testing.T) {
	effects := hook.Effects{Events: []*harnessv1.Event{event.HookResult("a", "on_pause", "pause", "")}, Notes: []hook.Note{{HookID: "a", Text: "one"}},
		Pause: "look", Abort: "stop"}
	s := reflecting()
	step := runstate.NewStep("stopdecision", s, 3)
	step.Apply(effects)
	if want := (&harnessv1.HookState{Pause: "look"}); !proto.Equal(s.GetHooks(), want) {
		t.Errorf("the state has %v, want %v: an abort is for the decision", s.GetHooks(), want)
	}
	unchanged := reflecting()
	entry := runstate.NewEntry(&harnessv1.Journal{}, unchanged, 3)
	entry.Apply(effects)
	for _, d := range []*runstate.Draft{step, entry} {
		if len(d.Events) != 2 || d.Events[0].GetHookResult() == nil || d.Events[1].GetGuidanceInjected() == nil || len(d.Appended) != 1 {
			t.Errorf("the draft has events %v and messages %v", d.Events, d.Appended)
		}
	}
	if unchanged.GetHooks() != nil {
		t.Errorf("an entry changed the state to %v", unchanged.GetHooks())
	}
}

func TestRecordWantsKeepsEarlierReasons(t *testing.T) {
	s := &harnessv1.Snapshot{}
	if runstate.RecordWants(s, nil); s.GetHooks() != nil {
		t.Errorf("nothing wanted leaves %v", s.GetHooks())
	}
	runstate.RecordWants(s, &harnessv1.HookState{SkipNext: "a", Pause: "b"})
	runstate.RecordWants(s, &harnessv1.HookState{Pause: "c", Replan: "d"})
	if want := (&harnessv1.HookState{SkipNext: "a", Pause: "c", Replan: "d"}); !proto.Equal(s.GetHooks(), want) {
		t.Errorf("the state has %v, want %v", s.GetHooks(), want)
	}
}

func TestDraftEntersPhase(t *testing.T) {
	s := reflecting()
	d := runstate.NewStep("stopdecision", s, 3)
	if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN); err != nil {
		t.Fatal(err)
	}
	illegal := new(runstate.IllegalTransition)
	if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN); !errors.As(err, &illegal) {
		t.Errorf("a second change gives %v, want an illegal transition", err)
	}
	if len(d.Step.GetPhaseChanges()) != 1 || s.GetPhase() != harnessv1.Phase_PHASE_EXECUTING {
		t.Errorf("the step has %v and ends in %s", d.Step.GetPhaseChanges(), s.GetPhase())
	}
}

func TestDraftBecomesOutcome(t *testing.T) {
	s := reflecting()
	d := runstate.NewStep("stopdecision", s, 3)
	d.Guide("plan", "", "text")
	o := d.Output().GetOutcome()
	if o.GetStep().GetFrom() != "stopdecision" || o.GetStep().GetSnapshot() != s || len(o.GetAppended()) != 1 || len(o.GetEvents()) != 1 {
		t.Errorf("the outcome is %v", o)
	}
}

// TestTopicsNeedCompaction: guidance has a topic only in a run with compaction, and its
// event is the same.
func TestTopicsNeedCompaction(t *testing.T) {
	for want, compaction := range map[string]bool{"modes": true, "": false} {
		s := reflecting()
		s.Config = &harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{Compaction: proto.Bool(compaction)}}
		d := runstate.NewStep("repair", s, 3)
		m := d.GuideOn("modes", "mode", "rule", "Look only.")
		d.Guide("mode", "rule", "Look only.")
		if d.Appended[0] != m || m.GetTopic() != want || d.Marks() != compaction || d.Appended[1].GetTopic() != "" {
			t.Errorf("appended %v, want the topic %q", d.Appended, want)
		}
		if e := d.Events; len(e) != 2 || !proto.Equal(e[0], e[1]) || e[0].GetGuidanceInjected().GetText() != "Look only." {
			t.Errorf("the events are %v", e)
		}
	}
}
