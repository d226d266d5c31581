package gateway

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestTallyEqualsCountingRows: in whatever order steps arrive, late, twice, of deleted
// and of new runs, the tally equals a count of all rows.
func TestTallyEqualsCountingRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		statuses := map[string]harnessv1.RunStatus{
			"repair": harnessv1.RunStatus_RUN_STATUS_RUNNING, "park": harnessv1.RunStatus_RUN_STATUS_PARKED, "end": harnessv1.RunStatus_RUN_STATUS_DONE,
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			run := runlog.Run{Namespace: "n", ID: fmt.Sprintf("r%d", rapid.IntRange(0, 5).Draw(t, "run"))}
			to := rapid.SampledFrom([]string{"repair", "park", "end"}).Draw(t, "to")
			e := stepOf(run, uint64(rapid.IntRange(1, 100).Draw(t, "sequence")), noon, to, statuses[to])
			e.Record.GetStep().GetSnapshot().StopReason = &harnessv1.StopReason{Kind: rapid.SampledFrom([]string{"approval", "agent_done"}).Draw(t, "reason")}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				x.Gone(run, x.Seen(run))
			case 1:
				x.Relist()
				x.Listed()
			default:
				x.Apply(e)
			}
		}
		want := map[Count]int{}
		for i := range x.rows.order {
			r := x.rows.oldest(i)
			s := Count{Status: harnessv1.RunStatus(r.status)}
			if s.Status != harnessv1.RunStatus_RUN_STATUS_RUNNING {
				s.Reason = x.tally.reasons[r.reason()]
			}
			want[s]++
		}
		total := 0
		for _, s := range x.Counts() {
			total += s.Runs
			n := s.Runs
			s.Runs = 0
			if want[s] != n {
				t.Fatalf("%v: %d, want %d", s, n, want[s])
			}
		}
		if total != len(x.rows.order) {
			t.Fatalf("%d runs in the tally of %d", total, len(x.rows.order))
		}
	})
}

func TestReasonsBeyondTheTableAreOther(t *testing.T) {
	var x Index
	for i := range 300 {
		e := stepOf(runlog.Run{Namespace: "n", ID: fmt.Sprintf("r%d", i)}, uint64(i+1), noon, runlog.Park, harnessv1.RunStatus_RUN_STATUS_PARKED)
		e.Record.GetStep().GetSnapshot().StopReason = &harnessv1.StopReason{Kind: fmt.Sprintf("kind%d", i)}
		x.Apply(e)
	}
	for _, s := range x.Counts() {
		if s.Reason == "other" && s.Runs == 300-(awaiting-2) {
			return
		}
	}
	t.Errorf("got %v", x.Counts())
}
