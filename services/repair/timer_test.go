package repair_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// TestStaleTimer: only a timer whose park is over is stale, also in a stale view.
func TestStaleTimer(t *testing.T) {
	parked := func(version, park uint64) runlog.Entry {
		return runlog.Entry{Header: runlog.Header{Version: version}, Record: &harnessv1.Record{Body: &harnessv1.Record_Step{Step: &harnessv1.Step{
			To: runlog.Park, Snapshot: &harnessv1.Snapshot{ParkVersion: park, Status: harnessv1.RunStatus_RUN_STATUS_PARKED},
		}}}}
	}
	running := func(version, park uint64) runlog.Entry {
		e := parked(version, park)
		e.Record.GetStep().Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING
		return e
	}
	journal := func(version uint64) runlog.Entry {
		return runlog.Entry{Header: runlog.Header{Version: version}, Record: &harnessv1.Record{}}
	}
	for name, c := range map[string]struct {
		newest, step runlog.Entry
		want         bool
	}{
		"parked there":                       {parked(7, 7), parked(7, 7), false},
		"the view is from before the park":   {running(6, 3), running(6, 3), false},
		"being woken":                        {parked(8, 7), parked(8, 7), false},
		"woken and running":                  {running(9, 7), running(9, 7), true},
		"running, in a turn":                 {journal(12), running(9, 7), true},
		"parked again":                       {parked(20, 20), parked(20, 20), true},
		"past a step that cannot be decoded": {runlog.Entry{Header: runlog.Header{Version: 9}}, runlog.Entry{}, false},
	} {
		if got := repair.StaleTimer(runlog.View{Newest: c.newest, Step: c.step}, 7); got != c.want {
			t.Errorf("%s: stale is %v", name, got)
		}
	}
}

// TestTimerLooksForItsItemAfterTheCursor, but after all items while its park is not
// stored: an item of its id is then from a park that was never committed.
func TestTimerLooksForItsItemAfterTheCursor(t *testing.T) {
	view := runlog.View{
		Newest: runlog.Entry{Header: runlog.Header{Version: 7}},
		Step: runlog.Entry{Header: runlog.Header{Version: 7, InboxCursor: 3}, Record: &harnessv1.Record{Body: &harnessv1.Record_Step{Step: &harnessv1.Step{
			To: runlog.Park, Snapshot: &harnessv1.Snapshot{ParkVersion: 6, Status: harnessv1.RunStatus_RUN_STATUS_PARKED},
		}}}},
		InboxSequence: 8,
	}
	for park, want := range map[uint64]uint64{6: 3, 8: 8} {
		_, a := repair.Timer{ParkVersion: park}.Next(repair.ViewRead{View: view})
		appends, ok := a.(repair.AppendItem)
		if !ok || appends.After != want || appends.Item.GetTimerFired().GetParkVersion() != park {
			t.Errorf("park %d: %+v, want an item after %d", park, a, want)
		}
	}
}
