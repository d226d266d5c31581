package repair_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// TestAnswersAreJudgedByTheView: the answer of a client's tool counts as the result of any
// other tool does. One that compaction has taken out of the view is repeated, not new.
func TestAnswersAreJudgedByTheView(t *testing.T) {
	arguments := content.Inline(`{"city":"Rome"}`)
	c := &conversation.Conversation{}
	c.Fold(&harnessv1.Record{Version: 1, Appended: []*harnessv1.Message{
		{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Is it raining?")},
		{Id: 2, TurnNumber: 1, Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{{Id: "b", Name: "get_weather", Arguments: arguments}}},
		{Id: 3, TurnNumber: 1, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "b", ToolName: "get_weather", Content: content.Inline("rain")},
	}})
	for name, k := range map[string]struct {
		through                   uint64 // results are cleared up to here; 0: there is no plan
		answer                    string
		told                      bool
		without                   bool // the conversation is not passed
		needs                     bool
		distinct, fresh, repeated uint32
	}{
		"nothing is cleared":                      {0, "rain", false, false, false, 1, 1, 0},
		"the result is shown":                     {2, "rain", false, false, true, 0, 0, 1},
		"the result is cleared":                   {3, "rain", false, false, true, 1, 0, 1},
		"the result is cleared, and it was told":  {3, "rain", true, false, true, 0, 0, 1},
		"another result":                          {3, "snow", false, false, true, 1, 1, 0},
		"the result, without the conversation":    {3, "rain", false, true, true, 1, 1, 0},
		"another result, without a conversation":  {3, "snow", false, true, true, 1, 1, 0},
		"another result, and the agent was told":  {3, "snow", true, false, true, 1, 1, 0},
		"nothing is cleared, and the answer same": {0, "rain", false, true, false, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := asking()
			s.PendingToolCalls = s.GetPendingToolCalls()[:1]
			s.PendingToolCalls[0].Arguments = arguments
			s.ProgressTracker = &harnessv1.ProgressTracker{ToldTooLarge: k.told}
			if k.through > 0 {
				s.CompactionPlan = &harnessv1.CompactionPlan{Renderer: 1, Watermarks: []*harnessv1.Watermark{{
					Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_RESULT, ThroughMessage: k.through,
				}}}
			}
			given := c
			if k.without {
				given = nil
			}
			o, asked := answered(t, s, given, result("c", k.answer))
			got := o.GetStep().GetSnapshot().GetProgressTracker()
			if asked != k.needs || got.GetDistinctOutcomes() != k.distinct || got.GetFreshOutcomes() != k.fresh || got.GetRepeatedOutcomes() != k.repeated {
				t.Errorf("needed the conversation: %t, counted %v", asked, got)
			}
		})
	}
}

// TestEqualAnswersCountOnce: of two equal answers that arrive together one is new, whether or
// not loops are detected.
func TestEqualAnswersCountOnce(t *testing.T) {
	s := asking()
	s.Config.DoomLoop.Enabled = proto.Bool(false)
	s.PendingToolCalls = s.GetPendingToolCalls()[:1]
	second := proto.CloneOf(s.GetPendingToolCalls()[0])
	second.CallId = "d"
	s.PendingToolCalls = append(s.PendingToolCalls, second)
	o, _ := answered(t, s, nil, result("c", "rain"), result("d", "rain"))
	if got := o.GetStep().GetSnapshot().GetProgressTracker(); got.GetDistinctOutcomes() != 1 || got.GetFreshOutcomes() != 1 || got.GetRepeatedOutcomes() != 1 {
		t.Errorf("counted %v", got)
	}
}

// TestOnlyAnswersNeedTheConversation: other inputs are taken in without reading it, and so
// are answers of a run that detects no stall.
func TestOnlyAnswersNeedTheConversation(t *testing.T) {
	cleared := func() *harnessv1.Snapshot {
		s := asking()
		s.CompactionPlan = &harnessv1.CompactionPlan{Renderer: 1, Summary: &harnessv1.SummaryRef{ThroughMessage: 3}}
		return s
	}
	if _, asked := answered(t, cleared(), nil, userMessage("wait")); asked {
		t.Error("a message needs the conversation")
	}
	if _, asked := answered(t, cleared(), nil, approve("a", deny)); !asked {
		t.Error("a denied call does not need the conversation")
	}
	s := cleared()
	s.Config.Stall.Enabled = proto.Bool(false)
	if _, asked := answered(t, s, nil, result("c", "rain")); asked {
		t.Error("without the detection of stalls an answer needs the conversation")
	}
}

// answered lets repair take in items, and reports whether it needed the conversation first.
func answered(t *testing.T, s *harnessv1.Snapshot, c *conversation.Conversation, items ...*harnessv1.InboxItem) (o *harnessv1.Outcome, asked bool) {
	t.Helper()
	batch := &harnessv1.InboxBatch{Cursor: s.GetInboxCursor()}
	for _, item := range items {
		batch.Cursor++
		item.Id, item.Sequence = string(rune('a'+len(batch.GetItems()))), batch.GetCursor()
		batch.Items = append(batch.Items, item)
	}
	in := &harnessv1.StepInput{
		Now: timestamppb.New(noon), Sequence: 99,
		Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE,
		}}},
		Observed: []*harnessv1.Observation{{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: batch}}},
	}
	made, err := agent.FromStep(in.GetStep())
	if err != nil {
		t.Fatal(err)
	}
	out, err := repair.DecideWith(in, made, nil)
	if asked = slices.Equal(out.GetNeeds().GetKeys(), []string{repair.NeedConversation}); asked {
		in.Observed = append(in.Observed, &harnessv1.Observation{Key: repair.NeedConversation, Value: &harnessv1.Observation_Conversation{
			Conversation: &harnessv1.ConversationRead{},
		}})
		out, err = repair.DecideWith(in, made, c)
	}
	if err != nil || out.GetOutcome() == nil {
		t.Fatalf("got %v, %v", out, err)
	}
	return out.GetOutcome(), asked
}
