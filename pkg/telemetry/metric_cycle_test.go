package telemetry

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const ms = time.Millisecond

// at returns a record that was made the given time after noon.
func at(after time.Duration, entry *harnessv1.Journal) *harnessv1.Record {
	return &harnessv1.Record{CommitTime: timestamppb.New(noon.Add(after)), Body: &harnessv1.Record_Journal{Journal: entry}}
}

func step(after time.Duration) *harnessv1.Record { return stepOf("stopdecision", after) }

func stepOf(executor string, after time.Duration, saw ...*harnessv1.Observation) *harnessv1.Record {
	return &harnessv1.Record{CommitTime: timestamppb.New(noon.Add(after)), Body: &harnessv1.Record_Step{Step: &harnessv1.Step{From: executor, Observed: saw}}}
}

// waitingStep returns the step with which compaction stores that the run waits.
func waitingStep(after time.Duration) *harnessv1.Record {
	r := stepOf("compaction", after)
	r.GetStep().To = "compaction"
	return r
}

func claimed(attempt uint32) *harnessv1.Journal {
	return &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{Attempt: attempt}}}
}

func responded(latency, preparation time.Duration) *harnessv1.Journal {
	return &harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{
		Model: "openai:m", Latency: durationpb.New(latency), Preparation: durationpb.New(preparation),
	}}}
}

func finished(ran time.Duration) *harnessv1.Journal {
	return &harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{ToolFinished: &harnessv1.ToolFinished{
		CallId: "c", Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Duration: durationpb.New(ran),
	}}}
}

func givenUp() *harnessv1.Journal {
	return &harnessv1.Journal{Entry: &harnessv1.Journal_ModelRetried{ModelRetried: &harnessv1.ModelRetried{Model: "openai:m", Last: true}}}
}

func withEvent(r *harnessv1.Record, e *harnessv1.Event) *harnessv1.Record {
	r.Events = append(r.Events, e)
	return r
}

func TestOverheadOfACycle(t *testing.T) {
	for name, c := range map[string]struct {
		records         []*harnessv1.Record
		whole, overhead time.Duration
		none            bool
	}{
		"one tool": {
			records: []*harnessv1.Record{step(0), at(2*ms, claimed(1)), at(60*ms, responded(50*ms, 5*ms)), at(90*ms, finished(20*ms)), step(100 * ms)},
			whole:   100 * ms, overhead: 25 * ms,
		},
		"tools beside each other count once": {
			records: []*harnessv1.Record{step(0), at(60*ms, responded(50*ms, 0)), at(100*ms, finished(30*ms)), at(110*ms, finished(30*ms)), step(120 * ms)},
			whole:   120 * ms, overhead: 30 * ms,
		},
		"tools one after the other count both": {
			records: []*harnessv1.Record{step(0), at(60*ms, responded(50*ms, 0)), at(80*ms, finished(10*ms)), at(100*ms, finished(10*ms)), step(120 * ms)},
			whole:   120 * ms, overhead: 50 * ms,
		},
		"clocks that differ give no negative time": {
			records: []*harnessv1.Record{step(0), at(10*ms, responded(50*ms, 0)), step(20 * ms)},
			whole:   20 * ms,
		},
		"without an answer of a model": {records: []*harnessv1.Record{step(0), step(10 * ms)}, none: true},
		"with a model that was given up": {
			records: []*harnessv1.Record{step(0), at(2*ms, givenUp()), at(9*ms, responded(ms, ms)), step(10 * ms)}, none: true,
		},
		"with a takeover": {
			records: []*harnessv1.Record{step(0), at(2*ms, claimed(1)), at(5*ms, claimed(2)), at(9*ms, responded(ms, ms)), step(10 * ms)}, none: true,
		},
		"with a wait for a summary": {
			records: []*harnessv1.Record{step(0), waitingStep(5 * ms), at(9000*ms, responded(ms, ms)), step(9010 * ms)}, none: true,
		},
		"of nothing": {none: true},
		"with what the mesh itself looks at": {
			records: []*harnessv1.Record{
				stepOf("gateway", 0), stepOf("repair", 5*ms, &harnessv1.Observation{Key: "inbox"}), stepOf("compaction", 6*ms),
				at(60*ms, responded(50*ms, 0)), stepOf("turn", 61*ms), step(70 * ms),
			},
			whole: 70 * ms, overhead: 20 * ms,
		},
		"with an executor of one's own": {
			records: []*harnessv1.Record{step(0), at(9*ms, responded(ms, ms)), stepOf("reviewer", 5000*ms), step(5010 * ms)}, none: true,
		},
		"with a hook": {
			records: []*harnessv1.Record{step(0), at(9*ms, responded(ms, ms)), stepOf("stopdecision", 5010*ms, &harnessv1.Observation{
				Value: &harnessv1.Observation_Hook{Hook: &harnessv1.HookOutcome{}},
			})}, none: true,
		},
		"with a check": {
			records: []*harnessv1.Record{step(0), at(9*ms, responded(ms, ms)), stepOf("stopdecision", 5010*ms, &harnessv1.Observation{
				Value: &harnessv1.Observation_Check{Check: &harnessv1.RequirementCoverage{}},
			})}, none: true,
		},
		"with a context provider": {
			records: []*harnessv1.Record{step(0), stepOf("repair", 4000*ms, &harnessv1.Observation{
				Key: "context:issues", Value: &harnessv1.Observation_Context{Context: &harnessv1.ContextText{}},
			}), at(4009*ms, responded(ms, ms)), step(4010 * ms)}, none: true,
		},
		"with a hook before the turn": {
			records: []*harnessv1.Record{
				step(0), at(4000*ms, &harnessv1.Journal{Entry: &harnessv1.Journal_TurnAdmitted{TurnAdmitted: &harnessv1.TurnAdmitted{}}}),
				at(4009*ms, responded(ms, ms)), step(4010 * ms),
			}, none: true,
		},
		"with a hook before a call": {
			records: []*harnessv1.Record{
				step(0), at(9*ms, responded(ms, ms)),
				at(4009*ms, &harnessv1.Journal{Entry: &harnessv1.Journal_CallsJudged{CallsJudged: &harnessv1.CallsJudged{}}}), step(4010 * ms),
			}, none: true,
		},
		"with a hook after a call": {
			records: []*harnessv1.Record{step(0), at(9*ms, responded(ms, ms)), withEvent(at(4009*ms, finished(ms)), &harnessv1.Event{
				Event: &harnessv1.Event_HookResult{HookResult: &harnessv1.HookResult{}},
			}), step(4010 * ms)}, none: true,
		},
		"with a hook after a call that fails": {
			records: []*harnessv1.Record{step(0), at(9*ms, responded(ms, ms)), withEvent(at(4009*ms, finished(ms)), &harnessv1.Event{
				Event: &harnessv1.Event_HookError{HookError: &harnessv1.HookError{}},
			}), step(4010 * ms)}, none: true,
		},
	} {
		got, ok := measure(c.records)
		if ok == c.none || ok && (got.whole != c.whole || got.overhead != c.overhead) {
			t.Errorf("%s: got %v, %v; want %v and %v", name, got, ok, c.whole, c.overhead)
		}
	}
}

func TestBusyMeshIsSampled(t *testing.T) {
	s := &cycles{ends: make(chan runlog.Entry, 1000), left: sampleBurst}
	now := noon
	sample := func(n int, pause time.Duration) (taken int) {
		for range n {
			now = now.Add(pause)
			s.sampleEnd(runlog.Entry{}, now)
		}
		taken = len(s.ends)
		for range taken {
			<-s.ends
		}
		return taken
	}
	if got := sample(100, time.Second); got != 100 {
		t.Errorf("%d of 100 at one a second", got)
	}
	if got := sample(10_000, ms); got < 10*samplesPerSecond || got > 10*samplesPerSecond+sampleBurst {
		t.Errorf("%d samples in ten busy seconds", got)
	}
}
