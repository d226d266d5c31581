package bridge

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// afterTurn is a step that an executor between turn and stopdecision receives.
func afterTurn() *harnessv1.StepInput {
	return &harnessv1.StepInput{
		Namespace: "default", RunId: "r", Version: 7, Now: timestamppb.Now(),
		Step: &harnessv1.Step{
			From: "turn", To: "critic",
			Snapshot: &harnessv1.Snapshot{
				Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_REFLECTING, TurnCount: 2, MaxTurns: 9,
				Workflow: []string{"repair", "turn", "critic", "stopdecision"}, InboxCursor: 4, MessageCount: 5,
				Turn: &harnessv1.TurnState{Number: 2, AgentDone: true}, DrainedItems: []uint64{1},
				Spent: &harnessv1.Spent{ToolCalls: 3},
			},
			Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: 2, AgentDone: true, CalledWorkComplete: true}},
		},
	}
}

func answer(o *harnessv1.Outcome) *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: o}}
}

func TestEmptyAnswerPassesTheStepOn(t *testing.T) {
	in := afterTurn()
	for name, out := range map[string]*harnessv1.StepOutput{"nothing": nil, "no output": {}, "no step": answer(&harnessv1.Outcome{}), "an empty step": answer(&harnessv1.Outcome{Step: &harnessv1.Step{}})} {
		got, err := Resolve("critic", in, out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := &harnessv1.Outcome{Step: &harnessv1.Step{From: "critic", To: "stopdecision", Snapshot: in.GetStep().GetSnapshot(), Message: in.GetStep().GetMessage()}}
		if !proto.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestGuidanceGetsAnIDATurnAndAnEvent(t *testing.T) {
	in := afterTurn()
	got, err := Resolve("critic", in, answer(&harnessv1.Outcome{Appended: []*harnessv1.Message{
		{Content: content.Inline("Say what you ran.")}, {Id: 900, Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: content.Inline("And how.")},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range got.GetAppended() {
		if m.GetId() != uint64(6+i) || m.GetRole() != harnessv1.Role_ROLE_USER || m.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE || m.GetTurnNumber() != 2 {
			t.Errorf("message %d: %v", i, m)
		}
		said := got.GetEvents()[i].GetGuidanceInjected()
		if said.GetKind() != "executor" || said.GetRuleId() != "critic" || said.GetText() != m.GetContent().GetInline() {
			t.Errorf("event %d: %v", i, said)
		}
	}
	if n := got.GetStep().GetSnapshot().GetMessageCount(); len(got.GetAppended()) != 2 || n != 7 {
		t.Errorf("%d messages, counted %d", len(got.GetAppended()), n)
	}
	if before := in.GetStep().GetSnapshot().GetMessageCount(); before != 5 {
		t.Error("the input was changed")
	}
}

func TestAnswerChangesWritableFields(t *testing.T) {
	in := afterTurn()
	s := runstate.Clone(in.GetStep().GetSnapshot())
	s.Mode, s.Model = "plan", "openai:small"
	done := &harnessv1.TurnComplete{TurnNumber: 2, CalledWorkComplete: true}
	got, err := Resolve("critic", in, answer(&harnessv1.Outcome{Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_TurnComplete{TurnComplete: done}}}))
	if err != nil {
		t.Fatal(err)
	}
	if got.GetStep().GetSnapshot().GetMode() != "plan" || got.GetStep().GetTurnComplete().GetAgentDone() {
		t.Errorf("got %v", got)
	}
}

// TestAgentDoneIsCopiedToTheSnapshot: a stop decision that is taken again reads it
// there.
func TestAgentDoneIsCopiedToTheSnapshot(t *testing.T) {
	got, err := Resolve("critic", afterTurn(), answer(&harnessv1.Outcome{Step: &harnessv1.Step{
		Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: 2, CalledWorkComplete: true}},
	}}))
	if err != nil || got.GetStep().GetSnapshot().GetTurn().GetAgentDone() {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestErrorFailsTheRun, whatever its kind and the place of the executor: a custom
// executor cannot cancel the run or report an outage of the provider.
func TestErrorFailsTheRun(t *testing.T) {
	before := afterTurn()
	before.GetStep().Message = &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}}
	for _, in := range []*harnessv1.StepInput{afterTurn(), before} {
		for kind := range harnessv1.TurnErrorKind_name {
			got, err := Resolve("critic", in, answer(&harnessv1.Outcome{Step: &harnessv1.Step{Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{
				TurnNumber: 99, Awaiting: true, Error: &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind(kind), Message: "no"},
			}}}}))
			want := &harnessv1.TurnComplete{TurnNumber: 2, Error: &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, Message: "critic: no"}}
			if err != nil || got.GetStep().GetTo() != workflow.StopDecision || !proto.Equal(got.GetStep().GetTurnComplete(), want) {
				t.Errorf("%d: %v, %v", kind, got, err)
			}
		}
	}
}

func TestResolveNamesTheRejectedField(t *testing.T) {
	change := func(f func(*harnessv1.Snapshot)) *harnessv1.Outcome {
		s := afterTurn().GetStep().GetSnapshot()
		f(s)
		return &harnessv1.Outcome{Step: &harnessv1.Step{Snapshot: s}}
	}
	say := func(m *harnessv1.Message) *harnessv1.Outcome {
		return &harnessv1.Outcome{Appended: []*harnessv1.Message{m}}
	}
	cases := map[string]struct {
		out  *harnessv1.StepOutput
		want string
	}{
		"needs":            {&harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: []string{"tokens"}}}}, "needs tokens"},
		"a wait":           {&harnessv1.StepOutput{Output: &harnessv1.StepOutput_Wait{Wait: &harnessv1.Wait{}}}, "return UNAVAILABLE"},
		"events":           {answer(&harnessv1.Outcome{Events: []*harnessv1.Event{{}}}), "leave events empty"},
		"from another":     {answer(&harnessv1.Outcome{Step: &harnessv1.Step{From: "turn"}}), "in the name of turn"},
		"to another":       {answer(&harnessv1.Outcome{Step: &harnessv1.Step{To: "repair"}}), "stopdecision follows it"},
		"to the end":       {answer(&harnessv1.Outcome{Step: &harnessv1.Step{To: runlog.End}}), "stopdecision follows it"},
		"another message":  {answer(&harnessv1.Outcome{Step: &harnessv1.Step{Message: &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{}}}}), "answered a turn_complete with a result"},
		"another turn":     {answer(&harnessv1.Outcome{Step: &harnessv1.Step{Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: 3}}}}), "only agent_done"},
		"the phase":        {answer(&harnessv1.Outcome{Step: &harnessv1.Step{PhaseChanges: []*harnessv1.PhaseChange{{}}}}), "phase_changes"},
		"the cursor":       {answer(change(func(s *harnessv1.Snapshot) { s.InboxCursor++ })), "snapshot.inbox_cursor"},
		"the status":       {answer(change(func(s *harnessv1.Snapshot) { s.Status = harnessv1.RunStatus_RUN_STATUS_DONE })), "snapshot.status"},
		"acceptance":       {answer(change(func(s *harnessv1.Snapshot) { s.Accepted = true })), "snapshot.accepted"},
		"what was spent":   {answer(change(func(s *harnessv1.Snapshot) { s.Spent.ToolCalls = 0 })), "snapshot.spent"},
		"the workflow":     {answer(change(func(s *harnessv1.Snapshot) { s.Workflow = nil })), "snapshot.workflow"},
		"the ids":          {answer(change(func(s *harnessv1.Snapshot) { s.DrainedItems = nil })), "snapshot.drained_items"},
		"work items":       {answer(change(func(s *harnessv1.Snapshot) { s.WorkItemLedger = &harnessv1.WorkItemLedger{} })), "snapshot.work_item_ledger"},
		"coverage":         {answer(change(func(s *harnessv1.Snapshot) { s.CoverageLedger = &harnessv1.CoverageLedger{} })), "snapshot.coverage_ledger"},
		"the window":       {answer(change(func(s *harnessv1.Snapshot) { s.TokenBudget = &harnessv1.TokenBudget{UsedTokens: 1} })), "snapshot.token_budget"},
		"an error's way":   {answer(&harnessv1.Outcome{Step: &harnessv1.Step{To: "turn", Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{Error: &harnessv1.TurnError{}}}}}), "expected stopdecision"},
		"more turns":       {answer(change(func(s *harnessv1.Snapshot) { s.MaxTurns = 900 })), "snapshot.max_turns"},
		"an empty message": {answer(say(&harnessv1.Message{})), "appended[0] has no inline text"},
		"the model's part": {answer(say(&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("x")})), "appended[0] is not guidance"},
		"the user's words": {answer(say(&harnessv1.Message{Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline("x")})), "appended[0] is not guidance"},
		"a tool's result":  {answer(say(&harnessv1.Message{ToolCallId: "c", Content: content.Inline("x")})), "appended[0] is not guidance"},
		"too much text":    {answer(say(&harnessv1.Message{Content: content.Inline(strings.Repeat("x", maxText+1))})), "more than 65536 bytes"},
		"too many":         {answer(&harnessv1.Outcome{Appended: make([]*harnessv1.Message, maxAppended+1)}), "17 messages"},
	}
	for name, c := range cases {
		_, err := Resolve("critic", afterTurn(), c.out)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %q", name, err, c.want)
		}
	}
	// Fields that the protos of the executor do not know must be kept.
	in := afterTurn()
	in.GetStep().GetSnapshot().ProtoReflect().SetUnknown([]byte{0xf8, 0x3f, 1})
	if _, err := Resolve("critic", in, answer(change(func(*harnessv1.Snapshot) {}))); err == nil || !strings.Contains(err.Error(), "do not know") {
		t.Errorf("lost fields: %v", err)
	}
}

func TestCheckNameRejectsReservedNames(t *testing.T) {
	for name, good := range map[string]bool{
		"critic": true, "compaction": true,
		"stopdecision": false, "turn": false, "repair": false, "park": false, "end": false, "gateway": false, "all": false, "a b": false, "": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestCompactionSetsWatermarks of a plan that a view can be made of, and nothing else of it.
func TestCompactionSetsWatermarks(t *testing.T) {
	in := afterTurn()
	in.Step.Message = &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}}
	in.Step.Snapshot.Workflow = workflow.Default()
	in.Step.Snapshot.CompactionPlan = &harnessv1.CompactionPlan{Renderer: view.Renderer, Jobs: []*harnessv1.SummaryJob{{Key: "k"}}}
	mark := &harnessv1.Watermark{Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_RESULT, ThroughMessage: 4}
	for want, set := range map[string]func(*harnessv1.Snapshot){
		"":              func(s *harnessv1.Snapshot) { s.CompactionPlan.Watermarks = append(s.CompactionPlan.Watermarks, mark) },
		"renderer":      func(s *harnessv1.Snapshot) { s.CompactionPlan.Renderer = view.Renderer + 1 },
		"17 watermarks": func(s *harnessv1.Snapshot) { s.CompactionPlan.Watermarks = make([]*harnessv1.Watermark, 17) },
		"the run has 3 mess": func(s *harnessv1.Snapshot) {
			s.MessageCount = 3
			s.CompactionPlan.Watermarks = []*harnessv1.Watermark{mark}
		},
		"a summary": func(s *harnessv1.Snapshot) { s.CompactionPlan.Summary = &harnessv1.SummaryRef{Key: "made up"} },
		"or a job":  func(s *harnessv1.Snapshot) { s.CompactionPlan = nil },
	} {
		given := proto.CloneOf(in)
		s := proto.CloneOf(in.GetStep().GetSnapshot())
		set(s)
		given.Step.Snapshot.MessageCount = s.GetMessageCount()
		got, err := Resolve(workflow.Compaction, given, answer(&harnessv1.Outcome{Step: &harnessv1.Step{Snapshot: s}}))
		switch {
		case want == "" && (err != nil || len(got.GetStep().GetSnapshot().GetCompactionPlan().GetWatermarks()) != 1):
			t.Errorf("a watermark: %v, %v", got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", want, err)
		}
		if _, err := Resolve("critic", given, answer(&harnessv1.Outcome{Step: &harnessv1.Step{Snapshot: s}})); err == nil {
			t.Errorf("%s: accepted from an executor that is not compaction", want)
		}
	}
}
