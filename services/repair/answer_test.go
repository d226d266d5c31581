package repair_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// asking is a run whose turn 3 waits for a client for half a minute more, for a
// person until two o'clock, and for an approval until three.
func asking() *harnessv1.Snapshot {
	s := waiting()
	s.PendingToolCalls = []*harnessv1.PendingCall{
		pending("c", "get_weather", runstate.KindClientTool, 30*time.Second),
		pending("q", "ask_user", runstate.KindQuestion, 2*time.Hour),
		pending("a", "run_command", runstate.KindApproval, 3*time.Hour),
	}
	s.PendingToolCalls[0].Origin = harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
	s.StopReason, s.WakeAt = runstate.AwaitReason(s, 3), s.GetPendingToolCalls()[0].GetDeadline()
	return s
}

func pending(id, tool, kind string, until time.Duration) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{
		CallId: id, Tool: tool, Kind: kind, TurnNumber: 3, Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL,
		Deadline: timestamppb.New(noon.Add(until)),
	}
}

func result(id, text string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: id, Result: content.Inline(text)}}}
}

func failure(id, text string) *harnessv1.InboxItem {
	item := result(id, text)
	item.GetToolAnswer().IsError = true
	return item
}

func declared(digest string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ToolsDeclared{ToolsDeclared: &harnessv1.ToolsDeclared{
		Tools: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: digest}}},
	}}}
}

// TestAnswers checks what each answer does to a run that waits for three.
func TestAnswers(t *testing.T) {
	type items = []*harnessv1.InboxItem
	for _, c := range []struct {
		name   string
		items  items
		want   string
		events string
		left   string
	}{
		{"a result", items{result("c", "sunny")}, "park question", "tool.result input.accepted", "qa"},
		{"an empty result", items{result("c", "")}, "park question", "tool.result input.accepted", "qa"},
		{"a result that says how it failed", items{failure("c", "no such town")}, "park question", "tool.error input.accepted", "qa"},
		{"an answer to a question", items{result("q", "blue")}, "park client_tool", "tool.result input.accepted", "ca"},
		{"all answers", items{result("q", "blue"), result("c", "sunny"), approve("a", deny)}, "stopdecision",
			"tool.result input.accepted tool.result input.accepted approval.answered tool.denied input.accepted step.start step.end", ""},
		{"all answers, one call to be run", items{approve("a", once), result("q", "blue"), result("c", "sunny")}, "compaction",
			"approval.answered input.accepted tool.result input.accepted tool.result input.accepted", ""},
		{"two results for one call", items{result("c", "sunny"), result("c", "rainy")}, "park question", "tool.result input.accepted input.rejected", "qa"},
		{"a result for a call that waits for an approval", items{result("a", "done")}, "park client_tool", "input.rejected", "cqa"},
		{"an approval of a call that waits for a result", items{approve("c", once)}, "park client_tool", "input.rejected", "cqa"},
		{"a result for no call", items{result("z", "x")}, "park client_tool", "input.rejected", "cqa"},
		{"an interrupt", items{interrupt()}, "park interrupted", "input.accepted repair repair repair run.interrupted session.pause", ""},
		{"an answer behind an interrupt", items{interrupt(), result("c", "sunny")}, "park interrupted",
			"input.accepted tool.result input.accepted repair repair run.interrupted session.pause", ""},
		{"other tools", items{declared("d")}, "park client_tool", "input.accepted", "cqa"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := drain(t, asking(), c.items...)
			left := ""
			for _, call := range runstate.AwaitedCalls(o.GetStep().GetSnapshot()) {
				left += call.GetCallId()
			}
			if verdict(o) != c.want || events(o) != c.events || left != c.left {
				t.Errorf("goes to %s with %q waiting: %s\nwant %s with %q: %s", verdict(o), left, events(o), c.want, c.left, c.events)
			}
		})
	}
}

// TestAnAnswerIsTheResultOfItsCall as the model is given it.
func TestAnAnswerIsTheResultOfItsCall(t *testing.T) {
	o := drain(t, asking(), failure("c", "no such town"))
	m := o.GetAppended()[0]
	if m.GetRole() != harnessv1.Role_ROLE_TOOL || m.GetToolCallId() != "c" || m.GetToolName() != "get_weather" || m.GetTurnNumber() != 3 ||
		!m.GetIsError() || content.Text(m.GetContent()) != "no such town" {
		t.Errorf("the model is given %v", m)
	}
	if e := o.GetEvents()[0].GetToolError(); e.GetCallId() != "c" || e.GetTool() != "get_weather" {
		t.Errorf("observers see %v", e)
	}
}

// TestAnApprovedClientToolWaitsForItsClient: allowing such a call does not run it.
func TestAnApprovedClientToolWaitsForItsClient(t *testing.T) {
	s := asking()
	s.PendingToolCalls = s.GetPendingToolCalls()[:1]
	call := s.GetPendingToolCalls()[0]
	call.Kind, s.Config.Tools.AnswerTimeout = runstate.KindApproval, durationpb.New(time.Minute)
	o := drain(t, s, approve("c", once))
	got := runstate.AwaitedCalls(o.GetStep().GetSnapshot())
	if events(o) != "approval.answered tool.call input.accepted" || o.GetEvents()[1].GetToolCall().GetAwaits() != "client_tool" {
		t.Errorf("the events are %s", events(o))
	}
	if verdict(o) != "park client_tool" || len(got) != 1 || !got[0].GetDeadline().AsTime().Equal(noon.Add(time.Minute)) ||
		!o.GetStep().GetParked().GetWakeAt().AsTime().Equal(noon.Add(time.Minute)) {
		t.Fatalf("%s: %v", verdict(o), got)
	}
	s = o.GetStep().GetSnapshot()
	if again := drain(t, s, approve("c", deny)); verdict(again) != "park client_tool" || events(again) != "input.rejected" {
		t.Errorf("a second approval: %s: %s", verdict(again), events(again))
	}
	if done := drain(t, s, result("c", "sunny")); verdict(done) != "stopdecision" || events(done) != "tool.result input.accepted step.start step.end" {
		t.Errorf("its answer: %s: %s", verdict(done), events(done))
	}
	refused := drain(t, s, approve("c", deny), result("c", "sunny"), result("c", "rainy"))
	if events(refused) != "input.rejected tool.result input.accepted input.rejected step.start step.end" {
		t.Errorf("more answers than one: %s", events(refused))
	}
}

// TestExpiry: the timer of a park answers the calls whose time is over, and the
// next deadline makes a new park.
func TestExpiry(t *testing.T) {
	o := drain(t, asking(), timer(40)) // the clock here is half a minute slow
	got := o.GetStep().GetSnapshot()
	if verdict(o) != "park question" || events(o) != "repair input.accepted" || got.GetParkVersion() != 0 ||
		!got.GetWakeAt().AsTime().Equal(noon.Add(2*time.Hour)) || !o.GetStep().GetParked().GetWakeAt().AsTime().Equal(noon.Add(2*time.Hour)) {
		t.Errorf("%s, %s, %v", verdict(o), events(o), got)
	}
	if m := o.GetAppended()[0]; m.GetToolCallId() != "c" || !m.GetIsError() {
		t.Errorf("the message is %v", m)
	}
	if e := o.GetEvents()[0].GetRepair(); e.GetReason() != "expired" {
		t.Errorf("observers see %v", e)
	}
	if late := drain(t, got, result("c", "sunny")); events(late) != "input.rejected" {
		t.Errorf("an answer after the deadline: %s", events(late))
	}
	last := asking()
	last.PendingToolCalls = last.GetPendingToolCalls()[:1]
	if o := drain(t, last, timer(40)); verdict(o) != "stopdecision" || o.GetStep().GetSnapshot().GetWakeAt() != nil {
		t.Errorf("the last one expires: %s, wakes at %v", verdict(o), o.GetStep().GetSnapshot().GetWakeAt())
	}
}

// TestARefusedTimerIsNotRemembered: a park that comes to its version later has a
// timer of the same name.
func TestARefusedTimerIsNotRemembered(t *testing.T) {
	early := timer(40)
	early.Id = "timer-40"
	o := drain(t, running(), early)
	if got := o.GetStep().GetSnapshot(); events(o) != "input.rejected" || runstate.Drained(got, "timer-40") {
		t.Errorf("%s: remembered %v", events(o), got.GetDrainedItems())
	}
	if o := drain(t, asking(), early); events(o) != "repair input.accepted" || !runstate.Drained(o.GetStep().GetSnapshot(), "timer-40") {
		t.Errorf("the one that counts: %s", events(o))
	}
}

// TestAnAnswerMovesTheDeadline: the calls that still wait have another one, and
// another timer; where it stays, so does the park.
func TestAnAnswerMovesTheDeadline(t *testing.T) {
	if s := drain(t, asking(), result("c", "sunny")).GetStep().GetSnapshot(); s.GetParkVersion() != 0 || !s.GetWakeAt().AsTime().Equal(noon.Add(2*time.Hour)) {
		t.Errorf("after the first answer: version %d, wakes at %v", s.GetParkVersion(), s.GetWakeAt())
	}
	if s := drain(t, asking(), result("q", "blue")).GetStep().GetSnapshot(); s.GetParkVersion() != 40 || !proto.Equal(s.GetWakeAt(), asking().GetWakeAt()) {
		t.Errorf("after a later answer: version %d, wakes at %v", s.GetParkVersion(), s.GetWakeAt())
	}
	if s := drain(t, asking(), interrupt()).GetStep().GetSnapshot(); s.GetWakeAt() != nil {
		t.Errorf("interrupted, it wakes at %v", s.GetWakeAt())
	}
}

// TestDeclaredToolsReplaceTheFormer, also of a run that has ended.
func TestDeclaredToolsReplaceTheFormer(t *testing.T) {
	for name, s := range map[string]*harnessv1.Snapshot{"running": running(), "waiting": waiting(), "ended": finished(), "interrupted": parked("interrupted")} {
		s.ClientTools = declared("old").GetToolsDeclared().GetTools()
		o := drain(t, s, declared("new"))
		if got := o.GetStep().GetSnapshot().GetClientTools().GetBlob().GetDigest(); got != "new" || events(o) != "input.accepted" {
			t.Errorf("%s: %q, %s", name, got, events(o))
		}
		if want, got := runlog.IsRest(o.GetStep().GetTo()), name != "running"; want != got {
			t.Errorf("%s goes to %s", name, verdict(o))
		}
	}
}

// TestABudgetBelowWhatIsUsed extends nothing: the run would park again immediately.
func TestABudgetBelowWhatIsUsed(t *testing.T) {
	s := parked("budget_exceeded:tool_calls")
	s.Spent.ToolCalls = 300
	same, more := uint32(300), uint32(301)
	o := drain(t, s, resume(&harnessv1.Budgets{ToolCalls: &same}))
	if verdict(o) != "park budget_exceeded:tool_calls" || events(o) != "input.rejected" || o.GetStep().GetSnapshot().GetConfig().GetBudgets().GetToolCalls() != 300 {
		t.Errorf("%s: %s", verdict(o), events(o))
	}
	if o := drain(t, s, resume(&harnessv1.Budgets{ToolCalls: &same}), resume(&harnessv1.Budgets{ToolCalls: &more})); verdict(o) != "compaction" {
		t.Errorf("then a larger one: %s", verdict(o))
	}
}
