package known_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/known"
)

const (
	done      = harnessv1.ToolOutcome_TOOL_OUTCOME_DONE
	unknown   = harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
	cancelled = harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED
	refused   = harnessv1.ToolOutcome_TOOL_OUTCOME_REFUSED
	asks      = harnessv1.ToolOutcome_TOOL_OUTCOME_INPUT_REQUIRED
)

// run is a run with its log and the ledgers of its hosts.
type run struct {
	state   *harnessv1.LedgerState
	marks   *known.Marks
	calls   []known.Call
	log     map[string]string // the arguments of calls, as the model wrote them
	ledgers map[string][]*harnessv1.LedgerCall
}

func newRun() *run {
	r := &run{log: map[string]string{}, ledgers: map[string][]*harnessv1.LedgerCall{}}
	r.turn()
	return r
}

// turn begins a turn with the stored state.
func (r *run) turn() { r.marks, r.calls = known.New(proto.CloneOf(r.state)), nil }

// call starts a call under ledger A, which gets an entry there.
func (r *run) call(id string) *known.Call { return r.callOn("A", id, "{}", "{}") }

// callOn starts a call under a ledger. written are its arguments as the model wrote them, ran those in its entry.
func (r *run) callOn(ledger, id, written, ran string) *known.Call {
	c := r.start(ledger, id, written)
	r.enter(ledger, id, ran)
	return c
}

func (r *run) start(ledger, id, written string) *known.Call {
	r.log[runstate.RoundCall(id)] = written
	r.calls = append(r.calls, known.Call{ID: id, Ledger: ledger, Sent: true})
	return &r.calls[len(r.calls)-1]
}

// enter adds an entry, with a number that follows the mark.
func (r *run) enter(ledger, id, ran string) *harnessv1.LedgerCall {
	next := r.marks.Request(ledger, id, nil).Sequence + 1
	if of := r.ledgers[ledger]; len(of) > 0 {
		next = max(next, of[len(of)-1].GetSequence()+1)
	}
	c := &harnessv1.LedgerCall{CallId: id, Sequence: next, Digest: ran, Outcome: done}
	r.ledgers[ledger] = append(r.ledgers[ledger], c)
	return c
}

// end ends the newest call: with the number of its entry if numbered.
func (r *run) end(outcome harnessv1.ToolOutcome, numbered bool) {
	c := &r.calls[len(r.calls)-1]
	c.Sent, c.Outcome = false, outcome
	finished := &harnessv1.ToolFinished{Outcome: outcome}
	for _, e := range r.ledgers[c.Ledger] {
		if numbered && e.GetCallId() == c.ID {
			finished.LedgerSequence = e.GetSequence()
		}
	}
	r.marks.Finish(c.Ledger, c.ID, finished)
}

// next closes the turn and begins another one.
func (r *run) next() {
	r.state = r.marks.Next(r.state, r.calls, false, false)
	r.turn()
}

// send sends a call without an entry to the host of a ledger, and returns what counts as lost and how often the
// call was sent again.
func (r *run) send(ledger string) (lost string, again int) {
	const id = "new"
	for {
		request := r.marks.Request(ledger, id, r.calls)
		var unrecorded []*harnessv1.LedgerCall
		for _, e := range r.ledgers[ledger] {
			if e.GetSequence() > request.Sequence && !slices.Contains(request.Calls, e.GetCallId()) {
				unrecorded = append(unrecorded, e)
			}
		}
		if len(unrecorded) == 0 {
			return "", again
		}
		if request.Compared {
			for _, e := range unrecorded {
				e.Outcome = done // the host waits
			}
		}
		calls, more := r.marks.Compare(ledger, id, unrecorded[:min(len(unrecorded), 32)], func(e *harnessv1.LedgerCall) bool {
			return r.log[runstate.RoundCall(e.GetCallId())] == e.GetDigest()
		})
		if !more {
			var ids []string
			for _, c := range calls {
				ids = append(ids, c.GetCallId())
			}
			return strings.Join(ids, " "), again
		}
		if again++; again > 100 {
			return "it never ends", again
		}
	}
}

// rows are the rows of the contract in the comment of the package. Nothing is lost in them. again is how often the
// next call is sent again, since an entry is only found in the log.
var rows = map[string]struct {
	do    func(r *run)
	on    string // the ledger of the next call; empty: A
	again int
}{
	"ended: done, failed, asks a person": {do: func(r *run) {
		for i, outcome := range []harnessv1.ToolOutcome{done, done, asks} {
			r.call(fmt.Sprint("c", i))
			r.end(outcome, true)
			r.next()
		}
	}},
	"ended, its result was made in memory": {do: func(r *run) {
		r.start("A", "reads", "{}").Idempotent = true
		r.end(done, false)
		r.next()
	}},
	"UNKNOWN, from the host with its entry": {do: func(r *run) {
		r.call("c")
		r.end(unknown, true)
		r.next()
	}},
	"UNKNOWN, from a host with another": {do: func(r *run) {
		r.callOn("A", "c", "{}", "changed")
		r.end(unknown, false)
		r.next()
	}},
	"UNKNOWN, its host was given up": {do: func(r *run) {
		r.callOn("A", "c", "{}", "changed")
		r.end(unknown, false)
		r.next()
		for i := range 3 { // on the other host
			r.callOn("B", fmt.Sprint("b", i), "{}", "{}")
			r.end(done, true)
			r.next()
		}
	}},
	"killed by an interrupt": {do: func(r *run) {
		r.callOn("A", "c", "{}", "changed")
		r.end(cancelled, false)
		r.next()
	}},
	"ended before an interrupt could kill it": {again: 1, do: func(r *run) {
		r.call("c")
		r.end(done, false)
		r.next()
	}},
	"runs, sent by this worker": {do: func(r *run) {
		r.callOn("A", "c", "{}", "changed")
	}},
	"runs, sent by a worker that died": {again: 1, do: func(r *run) {
		r.call("c").Sent = false
	}},
	"its worker died, the turn was closed": {again: 1, do: func(r *run) {
		r.call("c")
		r.turn() // repair answers it, and the state is that of before
	}},
	"moved to another host": {on: "B", do: func(r *run) {
		r.callOn("B", "c", "{}", "{}")
		r.end(done, true)
		r.next()
	}},
	"started, refused, never sent": {do: func(r *run) {
		r.start("A", "c", "{}")
		r.end(refused, false)
		r.next()
	}},
	"continued with a person's answer": {again: 1, do: func(r *run) {
		r.call("c")
		r.end(asks, true)
		r.next()
		r.call("round:1:c")
		r.turn()
	}},
	"approved, with changed arguments": {do: func(r *run) {
		r.callOn("A", "c", "{}", "changed")
		r.end(done, true)
		r.callOn("A", "d", "{}", "changed")
		r.end(cancelled, false)
		r.next()
	}},
	"of a run of an earlier version": {do: func(r *run) {
		r.start("A", "c", "{}")
		r.end(done, false)
		r.next()
	}},
	"its ledger was replaced": {on: "B", do: func(r *run) {
		r.call("c")
		r.end(unknown, false)
		r.next()
	}},
	"its ledger forgot it, or is an older": {do: func(r *run) {
		r.call("c")
		r.end(done, true)
		r.next()
		r.ledgers["A"] = nil
		r.call("d")
		r.end(done, true)
		r.next()
	}},
	"of more than 8 ledgers": {again: 1, do: func(r *run) {
		for _, ledger := range strings.Split("ABCDEFGHI", "") {
			r.callOn(ledger, "c"+ledger, "{}", "{}")
			r.end(done, true)
			r.next()
		}
		if n := len(r.state.GetMarks()); n != 8 {
			panic(fmt.Sprint("there are marks of ", n))
		}
	}},
	"of a sub-agent, a client, the harness": {do: func(r *run) { r.log["c"] = "{}" }},
	"a check, a hook, a background command": {do: func(r *run) { r.next() }},
}

// TestTheLogKnows: whatever became of a call that the log has, its entry does not count as lost. Each row is in the
// comment of the package and the other way round.
func TestTheLogKnows(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("known.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(source), "\npackage known")
	var listed []string
	for line := range strings.Lines(comment) {
		if row, ok := strings.CutPrefix(line, "//\t"); ok && len(row) > 40 {
			listed = append(listed, strings.TrimSpace(row[:40]))
		}
	}
	listed = listed[1:] // its head
	for _, name := range listed {
		if _, ok := rows[name]; !ok {
			t.Errorf("%q has no case", name)
		}
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(listed, name) {
				t.Error("it is not in the comment of the package")
			}
			r := newRun()
			row.do(r)
			ledger := row.on
			if ledger == "" {
				ledger = "A"
			}
			if lost, again := r.send(ledger); lost != "" || again != row.again {
				t.Errorf("lost are %q, the call was sent %d times again, want %d", lost, again, row.again)
			}
			// What no record names is lost, whatever else became of calls.
			r.enter(ledger, "lost", "{}")
			if lost, _ := r.send(ledger); lost != "lost" {
				t.Errorf("of a lost call are lost %q", lost)
			}
		})
	}
}

// TestAnIDWithOtherArgumentsIsLost: an id that the log has again, with other arguments, does not make the
// entry known.
func TestAnIDWithOtherArgumentsIsLost(t *testing.T) {
	t.Parallel()
	r := newRun()
	r.enter("A", "c", "others")
	r.log["c"] = "{}" // it was not sent
	if lost, _ := r.send("A"); lost != "c" {
		t.Errorf("lost are %q", lost)
	}
}

// TestAMessageIsMadeOnceInATurn: after it no entry becomes known in the turn, so that no call runs before the model
// has read it; the state then knows those of the message, and the next change asks until one has asked.
func TestAMessageIsMadeOnceInATurn(t *testing.T) {
	t.Parallel()
	r := newRun()
	for i := range 40 {
		r.enter("A", fmt.Sprint("lost", i), "{}")
	}
	for _, want := range []struct {
		first, newest string
		sequence      uint64
	}{{"lost0", "lost31", 32}, {"lost32", "lost39", 40}} {
		lost, _ := r.send("A")
		if !strings.HasPrefix(lost, want.first+" ") || !strings.HasSuffix(lost, " "+want.newest) {
			t.Fatalf("lost are %q", lost)
		}
		r.start("A", "c"+want.first, "{}")
		r.calls[0].Outcome = refused
		r.marks.Finish("A", r.calls[0].ID, &harnessv1.ToolFinished{ToldSequence: want.sequence})
		r.marks.Finish("A", "replayed", &harnessv1.ToolFinished{LedgerSequence: 40})
		if again, _ := r.send("A"); again != lost || !r.marks.Told("A") {
			t.Errorf("after the message are lost %q", again)
		}
		r.next()
		if m := r.state.GetMarks(); len(m) != 1 || m[0].GetSequence() != want.sequence || !r.state.GetAsks() {
			t.Fatalf("the log knows %v", r.state)
		}
	}
	if lost, again := r.send("A"); lost != "" || again != 0 || r.state.GetTold() != 2 {
		t.Errorf("lost are %q", lost)
	}
	for _, c := range []struct{ stopped, asked, asks bool }{{false, false, true}, {true, true, true}, {false, true, false}} {
		if got := r.marks.Next(r.state, nil, c.stopped, c.asked).GetAsks(); got != c.asks {
			t.Errorf("after a turn with %+v the next change asks: %v", c, got)
		}
	}
}

// TestALostCallThatRunsIsAwaited: the call is sent again, and the request makes the host wait.
func TestALostCallThatRunsIsAwaited(t *testing.T) {
	t.Parallel()
	r := newRun()
	r.enter("A", "lost", "{}").Outcome = harnessv1.ToolOutcome_TOOL_OUTCOME_UNSPECIFIED
	if lost, again := r.send("A"); lost != "lost" || again != 1 {
		t.Errorf("lost are %q, sent %d times again", lost, again)
	}
}

// TestAHostThatDoesNotHeedTheRequest ends: a call is not sent again without end.
func TestAHostThatDoesNotHeedTheRequest(t *testing.T) {
	t.Parallel()
	m := known.New(nil)
	for range 1000 {
		if lost, again := m.Compare("A", "c", []*harnessv1.LedgerCall{{CallId: "x"}}, func(*harnessv1.LedgerCall) bool { return true }); !again {
			if len(lost) != 1 {
				t.Errorf("lost are %v", lost)
			}
			return
		}
	}
	t.Error("it is sent again without end")
}

// TestNothingIsStoredOfARunWithoutEntries: a run whose calls leave no entry has no state.
func TestNothingIsStoredOfARunWithoutEntries(t *testing.T) {
	t.Parallel()
	r := newRun()
	r.start("A", "reads", "{}").Idempotent = true
	r.end(done, false)
	r.next()
	if r.state != nil {
		t.Errorf("got %v", r.state)
	}
}

// TestMarksAreBounded: a run whose calls are killed again and again keeps the newest 64 ids.
func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	r := newRun()
	for i := range 100 {
		r.call(fmt.Sprint("c", i))
		r.end(cancelled, false)
		r.next()
	}
	if ids := r.state.GetMarks()[0].GetCalls(); len(ids) != 64 || ids[63] != "c99" {
		t.Errorf("%d ids, the last is %v", len(ids), ids)
	}
	if lost, again := r.send("A"); lost != "" || again > 2 {
		t.Errorf("lost are %q, sent %d times again", lost, again)
	}
}
