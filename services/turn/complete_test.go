package turn_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

const done = harnessv1.ToolOutcome_TOOL_OUTCOME_DONE

var (
	reads     = call("r", "read_file", `{"path":"a"}`)
	commands  = call("c", "run_command", `{}`)
	completes = call("w", "work_complete", `{"summary":"s"}`)
	down      = &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE, Message: "down"}
)

// TestTurnCounts checks how a turn counts, depending on how it ended.
func TestTurnCounts(t *testing.T) {
	const reflecting, awaiting = harnessv1.Phase_PHASE_REFLECTING, harnessv1.Phase_PHASE_AWAITING_TOOL
	fresh := func(r *model.Response) func(*testing.T) *worker {
		return func(t *testing.T) *worker { return responded(t, snapshot(), r).run(done) }
	}
	for _, c := range []struct {
		name    string
		work    func(*testing.T) *worker
		end     turn.End
		want    *harnessv1.TurnComplete
		turns   uint32
		phase   harnessv1.Phase
		outcome string // of step.end
		pending int
	}{
		{"calls", fresh(response(reads)), turn.End{}, &harnessv1.TurnComplete{TurnNumber: 1}, 1, reflecting, "completed", 0},
		{"work_complete", fresh(response(completes)), turn.End{},
			&harnessv1.TurnComplete{TurnNumber: 1, AgentDone: true, CalledWorkComplete: true}, 1, reflecting, "completed", 0},
		{"work_complete among others", fresh(response(reads, completes)), turn.End{},
			&harnessv1.TurnComplete{TurnNumber: 1, AgentDone: true, CalledWorkComplete: true}, 1, reflecting, "completed", 0},
		{"an approval", fresh(response(reads, commands)), turn.End{},
			&harnessv1.TurnComplete{TurnNumber: 1, Awaiting: true}, 0, awaiting, "awaiting_tool", 1},
		{"an approval and work_complete", fresh(response(completes, commands)), turn.End{},
			&harnessv1.TurnComplete{TurnNumber: 1, Awaiting: true}, 0, awaiting, "awaiting_tool", 1},
		{"no call, reminded", fresh(response()), turn.End{}, &harnessv1.TurnComplete{TurnNumber: 1}, 1, reflecting, "completed", 0},
		{"no call after the reminders", func(t *testing.T) *worker {
			s := snapshot()
			s.ContinuationCount = 2
			return responded(t, s, response())
		}, turn.End{}, &harnessv1.TurnComplete{TurnNumber: 1, AgentDone: true}, 1, reflecting, "completed", 0},
		{"no call, without reminders", func(t *testing.T) *worker {
			s := snapshot()
			s.Config.Continuation.Enabled = proto.Bool(false)
			return responded(t, s, response())
		}, turn.End{}, &harnessv1.TurnComplete{TurnNumber: 1, AgentDone: true}, 1, reflecting, "completed", 0},
		{"interrupted before the answer", unclaimed, turn.End{Interrupted: true},
			&harnessv1.TurnComplete{TurnNumber: 1, Interrupted: true}, 0, reflecting, "interrupted", 0},
		{"interrupted before its calls", func(t *testing.T) *worker { return responded(t, snapshot(), response(reads, commands)) },
			turn.End{Interrupted: true}, &harnessv1.TurnComplete{TurnNumber: 1, Interrupted: true}, 1, reflecting, "interrupted", 0},
		{"a call killed by a worker that died then", func(t *testing.T) *worker {
			w := responded(t, snapshot(), response(reads))
			return w.run(harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED)
		}, turn.End{}, &harnessv1.TurnComplete{TurnNumber: 1, Interrupted: true}, 1, reflecting, "interrupted", 0},
		{"an outage", unclaimed, turn.End{Error: down}, &harnessv1.TurnComplete{TurnNumber: 1, Error: down}, 0, reflecting, "error", 0},
		{"the rest of a turn", resumed, turn.End{}, &harnessv1.TurnComplete{TurnNumber: 1, AgentDone: true, CalledWorkComplete: true}, 1, reflecting, "completed", 0},
		{"the rest of a turn, interrupted", resumed, turn.End{Interrupted: true},
			&harnessv1.TurnComplete{TurnNumber: 1, AgentDone: true, CalledWorkComplete: true, Interrupted: true}, 1, reflecting, "interrupted", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.work(t)
			outcome := w.complete(c.end)
			step, s := outcome.GetStep(), outcome.GetStep().GetSnapshot()
			if !proto.Equal(step.GetTurnComplete(), c.want) || step.GetTo() != "stopdecision" {
				t.Errorf("to %s: %v, want %v", step.GetTo(), step.GetTurnComplete(), c.want)
			}
			if s.GetTurnCount() != c.turns || s.GetPhase() != c.phase || len(s.GetPendingToolCalls()) != c.pending || s.GetTurn().GetOpen() != c.want.GetAwaiting() {
				t.Errorf("the state is %v", s)
			}
			var ended []string
			for _, e := range outcome.GetEvents() {
				if e.GetStepEnd() != nil {
					ended = append(ended, e.GetStepEnd().GetOutcome())
				}
			}
			if fmt.Sprint(ended) != fmt.Sprint([]string{c.outcome}) {
				t.Errorf("step.end says %v", ended)
			}
			results := map[string]int{}
			for _, m := range append(appendedBy(w.journal), outcome.GetAppended()...) {
				results[m.GetToolCallId()]++
			}
			for _, m := range appendedBy(w.journal) {
				for _, call := range m.GetToolCalls() {
					if want := 1 - waits(s, call.GetId()); results[call.GetId()] != want {
						t.Errorf("call %s has %d results, want %d", call.GetId(), results[call.GetId()], want)
					}
				}
			}
		})
	}
}

func unclaimed(t *testing.T) *worker { return newWorker(t, snapshot()).folded() }

// resumed is a turn that continues with an approved call; its response also called
// work_complete.
func resumed(t *testing.T) *worker {
	s := snapshot()
	s.Turn = &harnessv1.TurnState{Number: 1, Open: true, AgentDone: true, CalledWorkComplete: true, CalledTools: true}
	s.PendingToolCalls = []*harnessv1.PendingCall{{
		CallId: "c", Tool: "run_command", Arguments: content.Inline("{}"), Class: harnessv1.PendingClass_PENDING_CLASS_APPROVED, TurnNumber: 1,
	}}
	w := newWorker(t, s)
	if w.mustEnd(); fmt.Sprint(w.effects) != "[run c]" {
		t.Errorf("a resumed turn has the effects %v", w.effects)
	}
	for _, rec := range w.journal {
		for _, e := range rec.GetEvents() {
			if e.GetToolCall() != nil {
				t.Error("a call is announced twice")
			}
		}
	}
	return w
}

func waits(s *harnessv1.Snapshot, id string) int {
	for _, c := range s.GetPendingToolCalls() {
		if c.GetCallId() == id {
			return 1
		}
	}
	return 0
}

// TestReminder: its text can be set, and only calls reset the count.
func TestReminder(t *testing.T) {
	s := snapshot()
	s.Config.Continuation.Text = "Go on."
	outcome := responded(t, s, response()).complete(turn.End{})
	if got := outcome.GetAppended(); len(got) != 1 || content.Text(got[0].GetContent()) != "Go on." ||
		got[0].GetKind() != harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION || got[0].GetId() != 4 {
		t.Errorf("nudged with %v", got)
	}
	for _, c := range []struct {
		r    *model.Response
		want uint32
	}{{response(), 2}, {response(reads), 0}, {response(call("x", "nothing", "{}")), 0}} {
		s := snapshot()
		s.ContinuationCount = 1
		if got := responded(t, s, c.r).run(done).complete(turn.End{}).GetStep().GetSnapshot().GetContinuationCount(); got != c.want {
			t.Errorf("after %d calls the count is %d, want %d", len(c.r.ToolCalls), got, c.want)
		}
	}
}

// TestOutageCountsItsTries: a scripted model continues its script after an outage.
func TestOutageCountsItsTries(t *testing.T) {
	w := unclaimed(t)
	w.state.Snapshot.FailedTries = 2
	for range 3 {
		w.storeRecord(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelRetried{ModelRetried: &harnessv1.ModelRetried{}}}, nil, nil)
	}
	if got := w.complete(turn.End{Error: down}).GetStep().GetSnapshot().GetFailedTries(); got != 5 {
		t.Errorf("%d tries failed", got)
	}
}

// TestUnavailable: a model that may respond later outweighs all that refuse.
func TestUnavailable(t *testing.T) {
	const (
		away    = harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE
		refused = harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR
		full    = harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED
	)
	for _, c := range []struct {
		kinds []harnessv1.TurnErrorKind
		want  harnessv1.TurnErrorKind
	}{
		{nil, refused},
		{[]harnessv1.TurnErrorKind{refused}, refused},
		{[]harnessv1.TurnErrorKind{refused, full}, full},
		{[]harnessv1.TurnErrorKind{full, refused}, full},
		{[]harnessv1.TurnErrorKind{full, away}, away},
		{[]harnessv1.TurnErrorKind{away, full, refused}, away},
	} {
		var failures []*harnessv1.ModelRetried
		for _, kind := range c.kinds {
			failures = append(failures, &harnessv1.ModelRetried{Model: "m", Error: "e", Kind: kind})
		}
		if got := turn.Unavailable(failures); got.GetKind() != c.want {
			t.Errorf("%v: %v", c.kinds, got)
		}
	}
	if got := turn.Unavailable([]*harnessv1.ModelRetried{{Model: "a", Error: "x"}, {Model: "b", Error: "y"}}).GetMessage(); got != "a: x\nb: y" {
		t.Errorf("message %q", got)
	}
}

// TestTheFirstModelThatReturns: the turn's error names the shortest wait that a provider asked
// for, unless a model that may answer named none.
func TestTheFirstModelThatReturns(t *testing.T) {
	const (
		away    = harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE
		refused = harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR
	)
	named := func(wait time.Duration) *harnessv1.ModelRetried {
		return &harnessv1.ModelRetried{Kind: away, RetryAfter: durationpb.New(wait)}
	}
	for name, c := range map[string]struct {
		failures []*harnessv1.ModelRetried
		want     time.Duration
	}{
		"one":                  {[]*harnessv1.ModelRetried{named(time.Hour)}, time.Hour},
		"two":                  {[]*harnessv1.ModelRetried{named(3 * time.Hour), named(time.Hour)}, time.Hour},
		"one that named none":  {[]*harnessv1.ModelRetried{named(time.Hour), {Kind: away}}, 0},
		"one that refused":     {[]*harnessv1.ModelRetried{{Kind: refused}, named(time.Hour)}, time.Hour},
		"one that has no key":  {[]*harnessv1.ModelRetried{{Kind: away, KeyMissing: true}, named(time.Hour)}, time.Hour},
		"none that may answer": {[]*harnessv1.ModelRetried{{Kind: refused}}, 0},
	} {
		if got := turn.Unavailable(c.failures).GetRetryAfter().AsDuration(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTriesOfFormerWorkerCount: a model that it gave up is not tried again.
func TestTriesOfFormerWorkerCount(t *testing.T) {
	w := unclaimed(t)
	for _, r := range []*harnessv1.ModelRetried{{Model: "a"}, {Model: "a", Last: true, Error: "gone"}, {Model: "b"}} {
		w.storeRecord(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelRetried{ModelRetried: r}}, nil, nil)
	}
	for ref, want := range map[string]uint32{"a": 2, "b": 1, "c": 0} {
		if n, last := w.p.Tries(ref); n != want || (last != nil) != (ref == "a") {
			t.Errorf("%s: %d tries, given up with %v", ref, n, last)
		}
	}
}

// TestUnknownEndIsAnOutcome: an agent whose tool host dies during each call has not
// stalled.
func TestUnknownEndIsAnOutcome(t *testing.T) {
	s := snapshot()
	s.Config.Stall = &harnessv1.StallConfig{Enabled: proto.Bool(true)}
	s.Config.DoomLoop = &harnessv1.DoomLoopConfig{Enabled: proto.Bool(true)}
	s.Config.Tools.Yolo = proto.Bool(true)
	w := responded(t, s, response(commands))
	w.run(harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN)
	after := w.complete(turn.End{}).GetStep().GetSnapshot()
	if after.GetProgressTracker().GetDistinctOutcomes() != 1 || len(after.GetDoomLoop().GetStrict()) != 1 {
		t.Errorf("%v, %v", after.GetProgressTracker(), after.GetDoomLoop())
	}
}
