package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// text adds a turn without calls.
func (a *agent) text(tokens uint32) {
	a.s.TurnCount++
	a.add(tokens, &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(fmt.Sprintf("Thought %d. ", a.s.GetTurnCount()) + strings.Repeat("so ", int(tokens)))})
}

// sent returns the messages of the next request, and their tokens with those of the tools and the buffer.
func (a *agent) sent(summary *harnessv1.StructuredSummary) (messages []*harnessv1.Message, tokens uint32) {
	var v view.View
	tokens = 700
	for _, it := range v.Update(&a.c, a.s.GetCompactionPlan(), summary) {
		messages, tokens = append(messages, it.Message), tokens+it.Tokens
	}
	return messages, tokens
}

// TestNoRunDiesOfItsOwnText: with every kind of message in turn, without any summary, each request of 300 turns
// fits, is valid, and has the goal, all kept messages and the last turn.
func TestNoRunDiesOfItsOwnText(t *testing.T) {
	for name, summarizer := range map[string]func(a *agent, job *harnessv1.SummaryJob){
		"garbage": func(a *agent, job *harnessv1.SummaryJob) {
			a.summaries[job.GetKey()] = &harnessv1.SummaryState{Ended: true, Error: "garbage"}
		},
		"hangs":  func(*agent, *harnessv1.SummaryJob) {},
		"absent": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, 12_000, nil)
			a.inference = summarizer != nil
			waited, waits := time.Duration(0), 0
			for turn := range 300 {
				switch turn % 6 {
				case 0:
					a.text(700)
				case 1:
					a.turn(900, replayable)
				case 2:
					a.turn(300, nonReplayable)
				case 3, 4:
					a.turn(20, replayable)
				default:
					a.text(60)
					a.add(90, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: content.Inline(strings.Repeat("Go on. ", 40))})
				}
				for asked := len(a.requested); ; {
					out := a.step()
					if summarizer != nil && len(a.requested) > asked {
						summarizer(a, a.requested[asked])
						asked++
					}
					if wait := out.GetWait(); wait != nil {
						waited += wait.GetUntil().AsTime().Sub(a.now)
						a.now = wait.GetUntil().AsTime()
						continue
					}
					step := out.GetOutcome().GetStep()
					if step.GetTo() == workflow.Turn {
						break
					}
					if waits++; step.GetTo() != workflow.Compaction {
						t.Fatalf("turn %d: the outcome is %v", turn, step.GetMessage())
					}
				}
				messages, tokens := a.sent(nil)
				last := messages[len(messages)-1]
				if shown := conversation.View(messages); tokens > 12_000 || len(shown) != len(messages) || content.Text(messages[1].GetContent()) != "Find the port." || last.GetId() != a.s.GetMessageCount() {
					t.Fatalf("turn %d: %d tokens, %d of %d messages, the last is %d of %d", turn, tokens, len(shown), len(messages), last.GetId(), a.s.GetMessageCount())
				}
			}
			if waited > 2*time.Minute || waits > 1 {
				t.Errorf("the run has waited for %s in %d turns", waited, waits)
			}
			if a.s.GetCompactionPlan().GetDropped() == 0 {
				t.Errorf("nothing is dropped: %v", a.s.GetCompactionPlan())
			}
		})
	}
}

// TestShortResultsAreDroppedWithTexts, and at last those that cannot be had again.
func TestShortResultsAreDroppedWithTexts(t *testing.T) {
	for _, c := range []struct {
		tokens     uint32
		durability harnessv1.Durability
	}{{60, replayable}, {12, replayable}, {90, nonReplayable}, {12, nonReplayable}} {
		a := newAgent(t, 10_000, nil)
		a.inference = false
		for range 400 {
			a.turn(c.tokens, c.durability)
			if out := a.step(); out.GetOutcome().GetStep().GetTo() != workflow.Turn {
				t.Fatalf("turn %d with results of %d tokens, %s: %v", a.s.GetTurnCount(), c.tokens, c.durability, out.GetOutcome().GetStep().GetMessage())
			}
		}
		everything := slices.ContainsFunc(a.s.GetCompactionPlan().GetWatermarks(), func(w *harnessv1.Watermark) bool {
			return w.GetAction() == harnessv1.CompactionAction_COMPACTION_ACTION_DROP && w.GetClass() == harnessv1.MessageClass_MESSAGE_CLASS_SPAN
		})
		if everything != (c.durability == nonReplayable) {
			t.Errorf("results of %d tokens, %s: the plan is %v", c.tokens, c.durability, a.s.GetCompactionPlan())
		}
	}
}

// TestTextsAreDroppedBeforeResultsAreShortened, and those of the recent part only if nothing else is left.
func TestTextsAreDroppedBeforeResultsAreShortened(t *testing.T) {
	late := newAgent(t, 10_000, nil)
	late.inference = false
	late.s.TurnCount++
	late.add(40, &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{{Id: "late", Name: "run_agent", Arguments: content.Inline("{}")}}})
	for range 16 {
		late.text(700)
	}
	late.add(100, &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "late", ToolName: "run_agent", Content: content.Inline(strings.Repeat("line\n", 100))})
	if out := late.step(); out.GetOutcome().GetStep().GetTo() != workflow.Turn || !strings.Contains(late.actions(), "drop 4 ") {
		t.Errorf("with a call that ended late: %q, %v", late.actions(), out.GetOutcome().GetStep().GetMessage())
	}

	a := newAgent(t, 10_000, nil)
	for range 13 {
		a.text(450)
		a.turn(180, nonReplayable)
	}
	a.step()
	for _, job := range a.requested {
		a.summaries[job.GetKey()] = &harnessv1.SummaryState{Ended: true, Error: "garbage"}
	}
	a.step()
	if actions := a.actions(); !strings.Contains(actions, "drop 3 ") || strings.Contains(actions, "shorten") {
		t.Errorf("the plan is %q, requested %v", actions, a.requested)
	}
}

// TestSummaryOfDroppedTexts: a summarizer that comes back summarizes the texts that were dropped meanwhile.
func TestSummaryOfDroppedTexts(t *testing.T) {
	a := newAgent(t, 10_000, func(c *harnessv1.ContextConfig) {
		c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE, harnessv1.CompactionAction_COMPACTION_ACTION_DROP}
	})
	a.inference = false
	for a.s.GetCompactionPlan().GetDropped() == 0 {
		a.text(500)
		a.step()
	}
	a.inference = true
	for len(a.requested) == 0 {
		a.text(500)
		a.step()
	}
	if job := a.requested[0]; job.GetFirstMessage() != 3 || job.GetThroughMessage() < 8 {
		t.Fatalf("requested %v", job)
	}
	a.summarized(3_500)
	for a.s.GetCompactionPlan().GetSummary() == nil && a.s.GetTurnCount() < 60 {
		a.text(500)
		a.step()
	}
	if a.s.GetCompactionPlan().GetSummary() == nil {
		t.Errorf("the summary is not shown: %v", a.s.GetCompactionPlan())
	}
}

// TestResultsThatNoRequestHasShown are shortened and not cleared, and results that cannot be produced again
// are never cleared.
func TestResultsThatNoRequestHasShown(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	a.inference = false
	for range 3 {
		a.turn(600, nonReplayable)
	}
	a.s.TurnCount++
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT}
	for i := range 6 {
		m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: fmt.Sprint(i), Name: "read_file", Arguments: content.Inline("{}")})
	}
	a.add(60, m)
	for i := range 6 {
		a.add(2_000, &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: fmt.Sprint(i), ToolName: "read_file", Durability: replayable, Content: content.Inline(strings.Repeat("line\n", 2_000))})
	}
	a.step()
	if actions := a.actions(); strings.Contains(actions, "clear") || !strings.Contains(actions, "shorten 14") {
		t.Errorf("the plan is %q", actions)
	}
	if _, tokens := a.sent(nil); tokens > 10_000 {
		t.Errorf("%d tokens are sent", tokens)
	}
}

// TestLinesReplaceWhatIsLonger: a result is cleared from 200 bytes on, and from four times those of its line on.
func TestLinesReplaceWhatIsLonger(t *testing.T) {
	for bytes, cleared := range map[int]bool{190: false, 420: false, 2_000: true} {
		a := newAgent(t, 10_000, func(c *harnessv1.ContextConfig) { c.ClearTokens = proto.Uint32(1) })
		id := a.turn(2_000, replayable)
		a.c.Messages[id-1].Content = content.Inline(strings.Repeat("x", bytes))
		for range 3 {
			a.turn(2_000, replayable)
		}
		a.step()
		if got := strings.Contains(a.actions(), fmt.Sprintf("clear %d ", id)); got != cleared {
			t.Errorf("%d bytes: the plan is %q", bytes, a.actions())
		}
	}
}

// TestLongMessagesOfTheUserAreMoreThan2000Tokens: those of 2,000 are shown.
func TestLongMessagesOfTheUserAreMoreThan2000Tokens(t *testing.T) {
	for tokens, brief := range map[uint32]bool{2_000: false, 2_001: true} {
		a := newAgent(t, 20_000, nil)
		id := a.add(tokens, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline(strings.Repeat("word ", 2_000))})
		for range 30 {
			a.turn(500, nonReplayable)
		}
		a.step()
		if got := strings.Contains(a.actions(), fmt.Sprintf("externalize %d", id)); got != brief {
			t.Errorf("%d tokens: the plan is %q", tokens, a.actions())
		}
	}
}

// TestPassThatEndsNearItsAim asks for no summary: it has freed 95 % of what it was to free.
func TestPassThatEndsNearItsAim(t *testing.T) {
	for _, c := range []struct {
		rest uint32
		want int
	}{{450, 0}, {900, 1}} {
		a := newAgent(t, 10_000, func(c *harnessv1.ContextConfig) {
			c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE}
			c.RecentMessages = proto.Uint32(2)
		})
		for range 4 {
			a.text(500)
		}
		a.turn(4_100-c.rest, replayable)
		a.add(1_650+c.rest, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline("More.")})
		a.turn(30, replayable)
		before := a.s.GetTokenBudget()
		if a.step(); len(a.requested) != c.want {
			t.Errorf("%d more than the aim: requested %v, the budget is %v, the plan %q", c.rest, a.requested, before, a.actions())
		}
	}
}

// TestSegmentAsksAgain: the failures of a segment do not count in the next one, whose jobs have other keys.
func TestSegmentAsksAgain(t *testing.T) {
	a := newAgent(t, 100_000, onlySummaries)
	runstate.OpenSegment(a.s)
	for range 15 {
		a.turn(5_500, replayable)
	}
	for range 2 {
		for asked := len(a.requested); len(a.requested) == asked; a.turn(1, replayable) {
			a.step()
		}
		a.summaries[a.requested[len(a.requested)-1].GetKey()] = &harnessv1.SummaryState{Ended: true, Error: "garbage"}
	}
	a.step()
	asked := len(a.requested)
	if runstate.OpenSegment(a.s); a.s.GetCompactionPlan().GetFailed() != nil {
		t.Fatalf("the plan is %v", a.s.GetCompactionPlan())
	}
	if a.step(); len(a.requested) != asked+1 || a.requested[asked].GetAttempt() != 1 || a.requested[asked].GetKey() == a.requested[0].GetKey() {
		t.Errorf("requested %v", a.requested)
	}
}
