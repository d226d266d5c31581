package compaction_test

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
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
		a.turn(5_500, nonReplayable)
	}
	a.step()
	done := a.completed()
	if len(done) != 1 || !strings.Contains(done[0].GetError(), "--roles inference") || len(a.requested) != 0 || done[0].GetFreedTokens() == 0 {
		t.Fatalf("requested %d, events: %v", len(a.requested), done)
	}
	a.inference = true
	for range 9 {
		a.turn(5_500, nonReplayable)
	}
	if a.step(); len(a.requested) != 1 || a.requested[0].GetAttempt() != 1 {
		t.Errorf("requested %v", a.requested)
	}
}
