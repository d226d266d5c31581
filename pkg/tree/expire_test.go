package tree_test

import (
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// TestExpireKeepsWhatRepairHasToKill: the calls of background commands and their ledgers, and
// nothing of what they are.
func TestExpireKeepsWhatRepairHasToKill(t *testing.T) {
	run := runlog.Run{Namespace: "n", ID: "r"}
	parked := runlog.Entry{Run: run, Sequence: 3, Record: &harnessv1.Record{Namespace: "n", RunId: "r", Version: 2, Schema: runlog.Schema,
		Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: runlog.Park, Snapshot: &harnessv1.Snapshot{
			Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Phase: harnessv1.Phase_PHASE_AWAITING_TOOL,
			BackgroundCommands: []*harnessv1.BackgroundCommand{{Id: "bg1", CallId: "c", LedgerId: "l", Command: "serve --password secret"}},
		}}}}}
	parked.Header = runlog.HeaderOf(parked.Record)
	rec, err := tree.Expire(runlog.View{Newest: parked, Step: parked}, "nina", time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := rec.GetStep().GetSnapshot().GetBackgroundCommands()
	if len(kept) != 1 || kept[0].GetCallId() != "c" || kept[0].GetLedgerId() != "l" || kept[0].GetCommand() != "" {
		t.Errorf("kept %v", kept)
	}
}
