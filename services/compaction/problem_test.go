package compaction_test

import (
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// onlySummaries makes summaries the only strategy of a run.
func onlySummaries(c *harnessv1.ContextConfig) {
	c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE}
}

// TestFailedSummaryIsAnEvent also if the pass frees nothing, and once.
func TestFailedSummaryIsAnEvent(t *testing.T) {
	a := newAgent(t, 10_000, onlySummaries)
	for range 13 {
		a.turn(550, replayable)
	}
	a.step()
	job := a.requested[0]
	a.summaries[job.GetKey()] = &harnessv1.SummaryState{Ended: true, Error: "the summarizer called a tool"}
	for range 2 {
		a.turn(20, replayable)
		a.step()
	}
	done := a.completed()
	if len(done) != 1 || done[0].GetError() != "the summarizer called a tool" || done[0].GetFreedTokens() != 0 || done[0].GetPass() != 0 || len(done[0].GetStrategies()) != 0 {
		t.Errorf("events: %v", done)
	}
}

// TestMissingWorkerIsAnEvent of the pass that clears results instead, and takes no attempt.
func TestMissingWorkerIsAnEvent(t *testing.T) {
	a := newAgent(t, 100_000, onlySummaries)
	a.inference = false
	for range 15 {
		a.turn(5_500, replayable)
	}
	a.step()
	done := a.completed()
	if len(done) != 1 || !strings.Contains(done[0].GetError(), "--roles inference") || len(a.requested) != 0 || done[0].GetFreedTokens() == 0 {
		t.Fatalf("requested %d, events: %v", len(a.requested), done)
	}
	a.inference = true
	for range 9 {
		a.turn(5_500, replayable)
	}
	if a.step(); len(a.requested) != 1 || a.requested[0].GetAttempt() != 1 {
		t.Errorf("requested %v", a.requested)
	}
}

// TestFullWindowsRetryImmediately: if only a summary can make room, one that failed or hangs is
// requested again in the same turn, and the run ends only after the last attempt.
func TestFullWindowsRetryImmediately(t *testing.T) {
	a := newAgent(t, 10_000, onlySummaries)
	for range 20 {
		a.s.TurnCount++
		a.add(550, &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("A long thought.")})
	}
	var out *harnessv1.StepOutput
	for attempt := 1; attempt <= 3; attempt++ {
		if out = a.step(); len(a.requested) != attempt || a.requested[attempt-1].GetAttempt() != uint32(attempt) || out.GetOutcome().GetStep().GetTo() != workflow.Compaction {
			t.Fatalf("attempt %d: requested %v, the output is %v", attempt, a.requested, out)
		}
		if attempt == 2 { // hangs
			a.now = a.now.Add(time.Hour)
			continue
		}
		a.summaries[a.requested[attempt-1].GetKey()] = &harnessv1.SummaryState{Ended: true, Error: "garbage"}
	}
	out = a.step()
	if kind := out.GetOutcome().GetStep().GetTurnComplete().GetError().GetKind(); kind != harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED || len(a.requested) != 3 {
		t.Errorf("requested %d, the output is %v", len(a.requested), out)
	}
}

// TestLongMessageOfTheUser that has just arrived is shown with its beginning, rather than
// ending the run.
func TestLongMessageOfTheUser(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	a.turn(200, replayable)
	id := a.add(11_000, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline(strings.Repeat("word ", 11_000))})
	out := a.step()
	if out.GetOutcome().GetStep().GetTo() != workflow.Turn || a.s.GetTokenBudget().GetUsedTokens() >= 9_500 {
		t.Fatalf("%d tokens are left, the output is %v", a.s.GetTokenBudget().GetUsedTokens(), out)
	}
	x := &view.Index{}
	x.Add(&a.c)
	if action, _ := view.NewRules(a.s.GetCompactionPlan(), x).Action(x.Entry(id)); action != harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE {
		t.Errorf("the message is %s", action)
	}
}

// TestWaitIsAnnouncedOnce: a pass that waited for its summary began with the wait.
func TestWaitIsAnnouncedOnce(t *testing.T) {
	a := waitingAgent(t)
	a.summarized(300)
	a.step()
	started := 0
	for _, e := range a.events {
		if e.GetCompactionStarted() != nil {
			started++
		}
	}
	if started != 1 || len(a.completed()) != 1 {
		t.Errorf("%d begin, %d end", started, len(a.completed()))
	}
}

// TestWaitBeginsAgain when the window was not full in between.
func TestWaitBeginsAgain(t *testing.T) {
	a := waitingAgent(t)
	full := a.s.GetTokenBudget().GetUsedTokens()
	a.s.TokenBudget.ReportedTokens, a.s.TokenBudget.ReportedMessages, a.s.TokenBudget.UnreportedBytes = 3_000, a.s.GetMessageCount(), 0
	a.step()
	if job := a.s.GetCompactionPlan().GetJobs()[0]; job.GetWaitingSince() != nil {
		t.Fatalf("the run still waits: %v", job)
	}
	a.now = a.now.Add(time.Hour)
	a.s.TokenBudget.ReportedTokens = full
	if out := a.step(); out.GetOutcome().GetStep().GetTo() != workflow.Compaction || !a.s.GetCompactionPlan().GetJobs()[0].GetWaitingSince().AsTime().Equal(a.now) {
		t.Errorf("the output is %v", out)
	}
}

// waitingAgent returns a run that waits for a summary.
func waitingAgent(t *testing.T) *agent {
	t.Helper()
	a := newAgent(t, 10_000, onlySummaries)
	for range 16 {
		a.turn(550, replayable)
	}
	if out := a.step(); out.GetOutcome().GetStep().GetTo() != workflow.Compaction {
		t.Fatalf("the output is %v", out)
	}
	return a
}
