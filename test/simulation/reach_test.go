package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// TestSystemWorkloadReachesEverything checks that seeds do not pass for lack of events:
// within 550 seeds, runs reach everything in reached.
func TestSystemWorkloadReachesEverything(t *testing.T) {
	seen := map[string]int{}
	count := sim.Invariant{Name: "seen", Stored: func(_ *sim.Log, e runlog.Entry) string {
		for _, name := range namesOf(e.Record) {
			seen[name]++
		}
		return ""
	}}
	for seed := range uint64(550) {
		cfg, m := shape(seed)
		cfg.Check = append(cfg.Check, count)
		sim.Try(t, cfg, m.start)
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%6d %s", seen[name], name)
	}
	for _, name := range reached {
		if seen[name] == 0 {
			t.Errorf("no run came to %q", name)
		}
	}
}

// reached is what the workload must reach.
var reached = []string{
	"ApprovalAnswered", "ApprovalRequested", "BudgetWarn", "ContinuationPrompt", "ModelRetry", "RunCancelled", "RunInterrupted", "StopRejected",
	"ToolDenied", "ToolError", "ToolResult", "WorkerTakeover", "deleted",
	"InputAccepted approval", "InputAccepted cancel", "InputAccepted interrupt", "InputAccepted resume", "InputAccepted timer_fired",
	"InputAccepted tool_answer", "InputAccepted tools_declared", "InputAccepted user_message",
	"InputRejected approval", "InputRejected interrupt", "InputRejected resume", "InputRejected timer_fired", "InputRejected tool_answer",
	"Repair effect unknown", "Repair expired", "Repair not answered",
	"SessionComplete agent_done", "SessionComplete cancelled", "SessionComplete max_turns",
	"SessionResume resume", "SessionResume timer", "SessionResume user_message",
	"StepEnd awaiting_tool", "StepEnd error", "StepEnd interrupted",
	"Journal_ToolFinished TOOL_OUTCOME_CANCELLED", "Journal_ToolFinished TOOL_OUTCOME_UNKNOWN",
	"CompactionCompleted summarize", "CompactionCompleted clear summarize", "CompactionCompleted direct_clear",
	"compaction to compaction", "compaction to stopdecision", // a wait, and the end of one for an input
	"summary:", "summary: no response within s", "summary: the summarizer returned no JSON object",
	"AgentStarted", "AgentStarted background", "AgentStarted continued", "AgentWaiting", "AgentEnded CANCELLED", "AgentEnded DONE", "SubtaskCompleted",
	"InputAccepted order", "stopping: cancel", "stopping: finish", "stopping: interrupt", "depth 2", "parked: agent",
	"parked: budget_exceeded:tokens", "child deleted",
	"QualityComplexity [is_fallback]", "QualityContract", "QualityDegraded", "QualityPlanSelected", "QualityProfile", "QualityRetry", "QualityScored", "QualityVerified",
	"QualityVerified [is_fallback]", "job: no response within s", "job: overloaded (after  tries)", "delivered before the last",
	"parked: approval", "parked: budget_exceeded:tool_calls", "parked: client_tool", "parked: interrupted", "parked: provider_unavailable", "parked: question",
}

// noDigit leaves out digits.
func noDigit(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// namesOf returns the names of what a record contains.
func namesOf(rec *harnessv1.Record) []string {
	var names []string
	for _, e := range rec.GetEvents() {
		name := strings.TrimPrefix(fmt.Sprintf("%T", e.GetEvent()), "*harnessv1.Event_")
		switch b := e.GetEvent().(type) {
		case *harnessv1.Event_InputAccepted:
			name += " " + b.InputAccepted.GetKind()
		case *harnessv1.Event_InputRejected:
			name += " " + b.InputRejected.GetKind()
		case *harnessv1.Event_Repair:
			name += " " + b.Repair.GetReason()
		case *harnessv1.Event_SessionResume:
			name += " " + b.SessionResume.GetCause()
		case *harnessv1.Event_StepEnd:
			name += " " + b.StepEnd.GetOutcome()
		case *harnessv1.Event_SessionComplete:
			name += " " + b.SessionComplete.GetReason().GetKind()
		case *harnessv1.Event_AgentStarted:
			if b.AgentStarted.GetBackground() {
				name += " background"
			}
			if b.AgentStarted.GetContinued() {
				name += " continued"
			}
		case *harnessv1.Event_AgentEnded:
			name += " " + strings.TrimPrefix(b.AgentEnded.GetStatus().String(), "RUN_STATUS_")
		case *harnessv1.Event_CompactionCompleted:
			name += " " + strings.Join(b.CompactionCompleted.GetStrategies(), " ")
		}
		names = append(append(names, name), fallbackNames(name, e)...)
	}
	if s := rec.GetStep(); s != nil {
		if v := s.GetResult().GetQuality(); v.GetDelivered() < v.GetAttempts() {
			names = append(names, "delivered before the last")
		}
		names = append(names, "step to "+s.GetTo(), s.GetFrom()+" to "+s.GetTo())
		for _, o := range s.GetObserved() {
			if end := o.GetJob(); end.GetError() != "" {
				names = append(names, "job: "+strings.Map(noDigit, end.GetError()))
			}
			if end := o.GetSummary(); end.GetEnded() {
				names = append(names, strings.TrimRight("summary: "+strings.Map(noDigit, end.GetError()), " "))
			}
		}
		if s.GetTo() == runlog.Park {
			names = append(names, "parked: "+s.GetSnapshot().GetStopReason().GetKind())
		}
		if s.GetSnapshot().GetExpireTime() != nil {
			names = append(names, "deleted")
			if s.GetSnapshot().GetParent() != nil {
				names = append(names, "child deleted")
			}
		}
		names = append(names, treeNames(s.GetSnapshot())...)
	}
	if j := rec.GetJournal(); j != nil {
		name := strings.TrimPrefix(fmt.Sprintf("%T", j.GetEntry()), "*harnessv1.")
		if f := j.GetToolFinished(); f != nil {
			name += " " + f.GetOutcome().String()
		}
		names = append(names, name)
	}
	return names
}

// treeNames returns the names of what a snapshot says of a tree.
func treeNames(s *harnessv1.Snapshot) []string {
	names := []string{fmt.Sprintf("depth %d", s.GetParent().GetDepth())}
	switch stopping := s.GetStopping(); {
	case stopping.GetCancel() != nil:
		names = append(names, "stopping: cancel")
	case stopping.GetInterrupt() != nil:
		names = append(names, "stopping: interrupt")
	case stopping.GetFinish() != nil:
		names = append(names, "stopping: finish")
	}
	return names
}
