package tree_test

import (
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// TestExpireKeepsWhatRepairHasToKill: the calls of background commands and those that hosts hold, and their ledgers, and
// nothing of what they are.
func TestExpireKeepsWhatRepairHasToKill(t *testing.T) {
	run := runlog.Run{Namespace: "n", ID: "r"}
	parked := runlog.Entry{Run: run, Sequence: 3, Record: &harnessv1.Record{Namespace: "n", RunId: "r", Version: 2, Schema: runlog.Schema,
		Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: runlog.Park, Snapshot: &harnessv1.Snapshot{
			Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Phase: harnessv1.Phase_PHASE_AWAITING_TOOL,
			BackgroundCommands: []*harnessv1.BackgroundCommand{{Id: "bg1", CallId: "c", LedgerId: "l", Command: "serve --password secret"}},
			PendingToolCalls:   []*harnessv1.PendingCall{{CallId: "q", Question: &harnessv1.ServerQuestion{LedgerId: "m"}}, {CallId: "p"}},
		}}}}}
	parked.Header = runlog.HeaderOf(parked.Record)
	rec, err := tree.Expire(runlog.View{Newest: parked, Step: parked}, "nina", time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := rec.GetStep().GetSnapshot().GetBackgroundCommands()
	if len(kept) != 2 || kept[1].GetCallId() != "q" || kept[1].GetLedgerId() != "m" || kept[0].GetCallId() != "c" || kept[0].GetLedgerId() != "l" || kept[0].GetCommand() != "" {
		t.Errorf("kept %v", kept)
	}
}

// TestExpireRefusesARunBelowWhichSomethingWorks: only idle or ended runs are deleted with their parent.
func TestExpireRefusesARunBelowWhichSomethingWorks(t *testing.T) {
	for _, c := range []struct {
		name   string
		report *harnessv1.ChildReport
		works  bool
	}{
		{"started", nil, true},
		{"waits for an answer", &harnessv1.ChildReport{Order: 1, Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "question"}}, false},
		{"has an order to take", &harnessv1.ChildReport{Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "question"}}, true},
		{"waits for a child", &harnessv1.ChildReport{Order: 1, Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "agent"}}, true},
		{"has ended", &harnessv1.ChildReport{Order: 1, Status: harnessv1.RunStatus_RUN_STATUS_DONE}, false},
	} {
		run := runlog.Run{Namespace: "n", ID: "r"}
		parked := runlog.Entry{Run: run, Sequence: 3, Record: &harnessv1.Record{Namespace: "n", RunId: "r", Version: 2, Schema: runlog.Schema,
			Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: runlog.Park, Snapshot: &harnessv1.Snapshot{
				Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Phase: harnessv1.Phase_PHASE_AWAITING_TOOL,
				Children: []*harnessv1.Child{{RunId: "a-1", CallId: "c", Want: harnessv1.ChildWant_CHILD_WANT_WORK, Order: 1, Report: c.report}},
			}}}}}
		parked.Header = runlog.HeaderOf(parked.Record)
		rec, err := tree.Expire(runlog.View{Newest: parked, Step: parked}, "nina", time.Now(), nil)
		if (err != nil) != c.works {
			t.Errorf("a child that %s: %v", c.name, err)
		}
		if err == nil && len(rec.GetStep().GetSnapshot().GetChildren()) != 1 {
			t.Errorf("a child that %s is not named in the closing record", c.name)
		}
	}
}
