package turn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// planned is an inbox that asks for plan mode, in which a turn has the tool read_file.
func planned(s *turn.State) turn.InboxChecked {
	set, err := tool.NewSet([]*harnessv1.ToolSpec{s.Offer.Lookup("read_file")})
	if err != nil {
		panic(err)
	}
	return turn.InboxChecked{Offer: &offer.Offer{Mode: "plan", Set: set, Blocked: map[string]bool{"write_file": true, "run_command": true}}}
}

// changing returns a worker whose model makes calls that read and write, and whose run is
// in plan mode after n reads of the inbox.
func changing(t *testing.T, n int) *worker {
	w := newWorker(t, snapshot(), call("a", "write_file", `{"path":"1"}`), call("b", "write_file", `{"path":"2"}`), call("c", "read_file", `{"path":"3"}`))
	read := 0
	w.inbox = func(turn.CheckInbox) turn.Event {
		if read++; read > n {
			return planned(w.state)
		}
		return turn.InboxChecked{}
	}
	return w
}

// TestModeChangesInTheOpenTurn changes the mode at each read of the inbox: the calls that
// have not started are refused if the mode does not allow them, and do not count as writes.
func TestModeChangesInTheOpenTurn(t *testing.T) {
	refused := mode.BlockedText("plan", "write_file")
	for n, want := range []struct {
		ran     string
		refused int
		started int // calls that are announced
	}{
		{"run c", 2, 1},             // when the model has answered
		{"run c", 2, 1},             // before calls start
		{"run a run c", 1, 3},       // before the second call is sent
		{"run a run b run c", 0, 3}, // afterwards
	} {
		w := changing(t, n)
		o := w.mustEnd()
		results := resultsOf(w.journal, o)
		if got := strings.Join(w.effects[1:], " "); got != want.ran || strings.Count(results, "!: "+refused) != want.refused {
			t.Errorf("after read %d: %s, results:\n%s", n, got, results)
		}
		announced, denied := 0, 0
		for _, rec := range w.journal {
			for _, e := range rec.GetEvents() {
				if e.GetToolCall() != nil {
					announced++
				}
				if e.GetToolDenied() != nil {
					denied++
				}
			}
		}
		if announced != want.started || denied != want.refused {
			t.Errorf("after read %d: %d calls are announced and %d denied", n, announced, denied)
		}
		if writes := o.GetStep().GetSnapshot().GetActivity().GetWrites(); int(writes) != 2-want.refused {
			t.Errorf("after read %d: %d writes", n, writes)
		}
	}
}

// TestModeThatAllowsMore: a call that the mode of the step does not allow runs if the inbox
// asks for one that does, and not if a later read takes the change back.
func TestModeThatAllowsMore(t *testing.T) {
	for name, stays := range map[string]bool{"stays": true, "is taken back": false} {
		w := newWorker(t, snapshot(), call("a", "write_file", `{"path":"1"}`))
		whole, later := *w.state.Offer, turn.InboxChecked{}
		whole.Mode = "execute"
		w.state.Offer, w.state.Snapshot.Mode = planned(w.state).Offer, "plan"
		if stays {
			later.Offer = &whole
		}
		w.inbox = func(a turn.CheckInbox) turn.Event {
			if a.Newest {
				return turn.InboxChecked{Offer: &whole}
			}
			return later
		}
		w.mustEnd()
		if ran := len(w.effects) == 2; ran != stays {
			t.Errorf("%s: %v", name, w.effects)
		}
	}
}

// TestUnsentCallsOfAFormerWorkerAreRefused: calls of a group that a former worker has not
// reached are refused; one that it may have sent is joined.
func TestUnsentCallsOfAFormerWorkerAreRefused(t *testing.T) {
	for dies, want := range map[int]string{3: "[run a run c]", 4: "[run b run c]"} {
		w := changing(t, 100)
		w.dies = dies
		if _, err := w.work(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.dies, w.effects = -1, nil
		w.inbox = func(turn.CheckInbox) turn.Event { return planned(w.state) }
		w.mustEnd()
		if got := fmt.Sprint(w.effects); got != want {
			t.Errorf("after %d records: %s, want %s", dies, got, want)
		}
	}
}

// TestInboxThatCannotBeRead after the model has answered: the answer is stored, and the
// inbox is read again before a call starts.
func TestInboxThatCannotBeRead(t *testing.T) {
	w := changing(t, 0)
	w.inbox = func(a turn.CheckInbox) turn.Event {
		if a.Newest {
			return turn.Failed{Err: errBroken}
		}
		return planned(w.state)
	}
	w.mustEnd()
	if got := fmt.Sprint(w.effects); got != "[model  run c]" {
		t.Error(got)
	}
}

// TestModeAfter: the last mode that the agent has counts.
func TestModeAfter(t *testing.T) {
	for _, c := range []struct{ at, changes, want string }{
		{"", "", ""}, {"", "plan", "plan"}, {"", "plan execute", ""}, {"plan", "execute", "execute"}, {"plan", "execute hasty", "execute"}, {"", "hasty", ""}, {"", "execute", ""},
	} {
		s := snapshot()
		s.Mode = c.at
		if got := turn.ModeAfter(s, newState(t, s).Definition, strings.Fields(c.changes)); got != c.want {
			t.Errorf("%q after %q is %q, want %q (%s)", c.changes, c.at, got, c.want, runstate.Mode(s))
		}
	}
}

// TestModeAfterOfAChildInPlanMode: only its parent ends it.
func TestModeAfterOfAChildInPlanMode(t *testing.T) {
	for name, c := range map[string]struct {
		parent *harnessv1.Parent
		want   string
	}{"a root": {nil, "plan"}, "a child": {&harnessv1.Parent{}, "plan"}} {
		s := &harnessv1.Snapshot{Parent: c.parent}
		if got := turn.ModeAfter(s, &agent.Definition{}, []string{"plan"}); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	s := &harnessv1.Snapshot{Parent: &harnessv1.Parent{Plans: true}, Mode: "execute"}
	if got := turn.ModeAfter(s, &agent.Definition{}, []string{"", "execute"}); got != "" {
		t.Errorf("it changes to %q", got)
	}
}
