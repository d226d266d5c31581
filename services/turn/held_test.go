package turn_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// holds is the response of a tool host that keeps its call in flight.
func holds() *harnessv1.ExecuteToolResponse {
	r := asks("s1")
	r.Question.LedgerId, r.Question.Valid = "elsewhere-1", durationpb.New(time.Minute)
	return r
}

// TestHeldCallsWaitAsLongAsTheirServers: the deadline is the earlier one of the run's and the host's.
func TestHeldCallsWaitAsLongAsTheirServers(t *testing.T) {
	long := questioned(t, asks("s1")).mustEnd().GetStep().GetSnapshot().GetPendingToolCalls()[0].GetDeadline().AsTime()
	short := questioned(t, holds()).mustEnd().GetStep().GetSnapshot().GetPendingToolCalls()[0].GetDeadline().AsTime()
	if before := long.Sub(short); before < time.Hour {
		t.Errorf("the deadline of a held call is %v before the usual one", before)
	}
}

// TestHeldCallsContinueAtTheirHost: the part after the answer is recorded and sent under the ledger of
// the host with the call in flight, and can never be another host's.
func TestHeldCallsContinueAtTheirHost(t *testing.T) {
	w := continued(t, nil)
	w.state.Snapshot.PendingToolCalls[0].Question.LedgerId = "elsewhere-1"
	w.mustEnd()
	var sent turn.SendCall
	for _, a := range w.actions {
		if send, ok := a.(turn.SendCall); ok {
			sent = send
		}
	}
	if sent.Ledger != "elsewhere-1" || sent.Fresh {
		t.Errorf("sent was %+v", sent)
	}
	var ledgers []string
	for _, rec := range w.journal {
		if started := rec.GetJournal().GetToolsStarted(); started != nil {
			ledgers = append(ledgers, started.GetLedgerId())
		}
	}
	if fmt.Sprint(ledgers) != "[elsewhere-1]" {
		t.Errorf("started under %v", ledgers)
	}
}

// TestStoppedHeldCalls: an interrupt leaves a held call to repair, which has its host cancel it.
func TestStoppedHeldCalls(t *testing.T) {
	w := questioned(t, holds())
	w.stops = func(a turn.Action) bool {
		_, waits := a.(turn.AwaitCall)
		return waits && fmt.Sprint(w.effects) == "[model m run a run b]"
	}
	s := w.mustEnd().GetStep().GetSnapshot()
	if waiting := runstate.AwaitedCalls(s); len(waiting) != 1 || !runstate.Held(waiting[0]) {
		t.Errorf("%v waits", waiting)
	}
}

// TestHeldCallsOfStoppedTurns: an interrupt before the part after the answer begins leaves the call to
// repair too.
func TestHeldCallsOfStoppedTurns(t *testing.T) {
	w := continued(t, nil)
	w.state.Snapshot.PendingToolCalls[0].Question.LedgerId = "elsewhere-1"
	w.stops = func(a turn.Action) bool { _, ok := a.(turn.CheckInbox); return ok }
	s := w.mustEnd().GetStep().GetSnapshot()
	if waiting := s.GetPendingToolCalls(); len(waiting) != 1 || !runstate.Held(waiting[0]) || len(w.effects) > 0 {
		t.Errorf("%v waits, effects %v", waiting, w.effects)
	}
}
