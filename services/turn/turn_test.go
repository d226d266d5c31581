package turn_test

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// worker carries a turn out on a journal that it may find begun, and notes
// every effect that it has.
type worker struct {
	t       *testing.T
	step    *harnessv1.Step
	journal []*harnessv1.Record
	effects []string
	p       *turn.Progress
	unknown map[string]bool // calls of which the tool host knows nothing
	dies    int             // records after which it dies; negative for never
}

func (w *worker) note(entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) bool {
	next := w.step.GetSnapshot().GetMessageCount()
	for _, rec := range w.journal {
		next += uint64(len(rec.GetAppended()))
	}
	for i, m := range appended {
		m.Id = next + uint64(i) + 1 //nolint:gosec // small
	}
	rec := &harnessv1.Record{
		Appended: appended, Events: events, Body: &harnessv1.Record_Journal{Journal: entry},
		Writer: &harnessv1.Writer{Instance: fmt.Sprintf("w%d", len(w.journal))},
	}
	if w.dies == 0 {
		return false
	}
	w.dies--
	w.journal = append(w.journal, rec)
	w.p.Fold(rec)
	return true
}

// carryOut goes on from the journal; false when it died on the way.
func (w *worker) carryOut() bool {
	s := w.step.GetSnapshot()
	w.p = turn.Begin(w.step)
	for _, rec := range w.journal {
		w.p.Fold(rec)
	}
	entry, events := turn.Claim(s, w.p)
	if !w.note(entry, nil, events) {
		return false
	}
	if w.p.NeedsModel() {
		w.effects = append(w.effects, "model")
		a := turn.Answer(s, w.p, response(
			call("a", "read_file", `{"path":"1"}`), call("b", "read_file", `{"path":"2"}`), call("c", "nothing", `{}`),
			call("d", "write_file", `{"path":"3"}`), call("e", "read_file", `{"path":"4"}`),
		), turn.Surroundings{Tools: tools(w.t), Known: func(string) bool { return false }})
		if !w.note(a.Entry, a.Appended, a.Events) {
			return false
		}
	}
	if calls := w.p.Unstarted(); len(calls) > 0 {
		entry, events := turn.Start(s, w.p, calls, "ledger")
		if !w.note(entry, nil, events) {
			return false
		}
	}
	for _, group := range w.p.Unfinished() {
		for _, c := range group {
			w.effects = append(w.effects, "run "+c.ID)
			r := &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "result of " + c.ID}
			if w.unknown[c.ID] {
				r = &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
			}
			entry, appended, events := turn.Finish(s, w.p, c, r)
			if !w.note(entry, appended, events) {
				return false
			}
		}
	}
	return true
}

// complete ends the turn as the executor does: on the snapshot with the
// journal's messages counted.
func (w *worker) complete(end turn.Ending) *harnessv1.Outcome {
	w.t.Helper()
	outcomes := make([]*harnessv1.Outcome, 2)
	for i := range outcomes {
		s := proto.CloneOf(w.step.GetSnapshot())
		if s.TokenBudget == nil {
			s.TokenBudget = &harnessv1.TokenBudget{}
		}
		for _, rec := range w.journal {
			for _, m := range rec.GetAppended() {
				s.MessageCount++
				s.TokenBudget.UnreportedBytes += runstate.MessageBytes(m)
			}
		}
		var err error
		if outcomes[i], err = turn.Complete(s, w.p, end); err != nil {
			w.t.Fatal(err)
		}
	}
	if !bytes.Equal(encode(w.t, outcomes[0]), encode(w.t, outcomes[1])) {
		w.t.Fatal("completed otherwise the second time")
	}
	if err := runstate.CheckPhases(w.step.GetSnapshot(), outcomes[0].GetStep()); err != nil {
		w.t.Fatal(err)
	}
	return outcomes[0]
}

func encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newWorker(t *testing.T) *worker {
	return &worker{t: t, step: &harnessv1.Step{Snapshot: snapshot()}, dies: -1}
}

// TestGoesOnFromAnyPrefix kills the worker behind every record of the journal
// and lets another one go on: every effect happens, the model is asked once
// beyond the answer, no call with a result is run again, and the turn ends as
// it would have without a death.
func TestGoesOnFromAnyPrefix(t *testing.T) {
	whole := newWorker(t)
	if !whole.carryOut() {
		t.Fatal("died")
	}
	want := whole.complete(turn.Ending{})
	for dies := range len(whole.journal) {
		w := newWorker(t)
		w.dies = dies
		if w.carryOut() {
			t.Fatalf("did not die behind record %d", dies)
		}
		recorded := len(w.journal)
		first := w.effects
		w.dies, w.effects = -1, nil
		if !w.carryOut() {
			t.Fatal("died again")
		}
		done := map[string]bool{}
		for _, rec := range w.journal[:recorded] {
			switch e := rec.GetJournal().GetEntry().(type) {
			case *harnessv1.Journal_ModelResponded:
				done["model"] = true
			case *harnessv1.Journal_ToolFinished:
				done["run "+e.ToolFinished.GetCallId()] = true
			}
		}
		for _, effect := range w.effects {
			if done[effect] {
				t.Errorf("died behind record %d: %s was done and is done again", dies, effect)
			}
			done[effect] = true
		}
		if len(done) != len(whole.effects) {
			t.Errorf("died behind record %d after %v: did %v, in all %d of %d", dies, first, w.effects, len(done), len(whole.effects))
		}
		if got := w.complete(turn.Ending{}); !bytes.Equal(encode(t, got), encode(t, want)) {
			t.Errorf("died behind record %d: ends as\n%v\nwant\n%v", dies, got, want)
		}
		var next uint64 = 2
		for _, rec := range w.journal {
			for _, m := range rec.GetAppended() {
				if next++; m.GetId() != next {
					t.Errorf("died behind record %d: message %d stands at %d", dies, m.GetId(), next)
				}
			}
		}
	}
}

// TestGroups: calls that may run beside each other form groups, in order.
func TestGroups(t *testing.T) {
	w := newWorker(t)
	w.dies = 3 // claimed, answered, started
	w.carryOut()
	var groups []string
	for _, g := range w.p.Unfinished() {
		name := ""
		for _, c := range g {
			name += c.ID
		}
		groups = append(groups, name)
	}
	if got := fmt.Sprint(groups); got != "[ab d e]" {
		t.Errorf("groups %s", got)
	}
	if len(w.p.Unstarted()) != 0 || w.p.Ledgers["a"] != "ledger" || w.p.NeedsModel() {
		t.Errorf("progress %+v", w.p)
	}
}

func TestClaim(t *testing.T) {
	w := newWorker(t)
	w.dies = 1
	w.carryOut()
	_, events := turn.Claim(w.step.GetSnapshot(), w.p)
	if takeover := events[0].GetWorkerTakeover(); len(events) != 1 || takeover.GetAttempt() != 2 || takeover.GetFormer() != "w0" {
		t.Errorf("a second claim says %v", events)
	}
	if start := w.journal[0].GetEvents()[0].GetStepStart(); start.GetAttempt() != 1 || start.GetResumed() {
		t.Errorf("the first claim says %v", w.journal[0].GetEvents())
	}
}

// TestAccount: what the provider reports replaces the estimate up to and with
// the answer; what came behind it is counted in bytes until the next report.
func TestAccount(t *testing.T) {
	w := newWorker(t)
	s := w.step.GetSnapshot()
	s.TokenBudget = &harnessv1.TokenBudget{UnreportedBytes: 1000}
	s.ContinuationCount, s.FailedTries = 2, 4
	w.carryOut()
	outcome := w.complete(turn.Ending{ToolTokens: 55})
	var behind uint64
	for i, rec := range w.journal {
		for j, m := range rec.GetAppended() {
			if i > 1 || j > 0 { // all but the answer itself
				behind += runstate.MessageBytes(m)
			}
		}
	}
	got := outcome.GetStep().GetSnapshot()
	want := &harnessv1.TokenBudget{ReportedTokens: 110, ReportedMessages: 3, UnreportedBytes: behind, ToolTokens: 55}
	if !proto.Equal(got.GetTokenBudget(), want) || behind == 0 {
		t.Errorf("budget %v, want %v", got.GetTokenBudget(), want)
	}
	if got.GetSpent().GetToolCalls() != 5 || got.GetSpent().GetModelCalls() != 1 || got.GetContinuationCount() != 0 || got.GetFailedTries() != 0 {
		t.Errorf("spent %v", got)
	}
	if got.GetTurnCount() != 1 || content.Text(got.GetAnswer()) != "text" || !got.GetTurn().GetCalledTools() {
		t.Errorf("turn %v", got)
	}
}

// TestUnknownEffects wait for repair, which tells the model.
func TestUnknownEffects(t *testing.T) {
	w := newWorker(t)
	w.unknown = map[string]bool{"d": true}
	w.carryOut()
	outcome := w.complete(turn.Ending{})
	pending := outcome.GetStep().GetSnapshot().GetPendingToolCalls()
	if len(pending) != 1 || pending[0].GetCallId() != "d" || pending[0].GetClass() != harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN ||
		pending[0].GetTurnNumber() != 1 || outcome.GetStep().GetTurnComplete().GetAwaiting() {
		t.Errorf("pending %v", pending)
	}
}
