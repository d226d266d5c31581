package runstate_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// spent is a run that has used five of everything in its segment, and ten of
// what counts over the run before it.
func spent() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		RunningSince: timestamppb.New(noon.Add(-2 * time.Second)),
		Config:       &harnessv1.LoopConfig{Budgets: &harnessv1.Budgets{}},
		Spent: &harnessv1.Spent{
			Turns: 5, ToolCalls: 5, ToolCallsTotal: 15,
			Active: durationpb.New(13 * time.Second), ActiveBeforeSegment: durationpb.New(10 * time.Second),
			Usage:              &harnessv1.Usage{InputTokens: 12, OutputTokens: 3, CostMicroUsd: 15_000_000},
			UsageBeforeSegment: &harnessv1.Usage{InputTokens: 8, OutputTokens: 2, CostMicroUsd: 10_000_000},
			Runs:               15, RunsBeforeSegment: 10, RunsRefused: 1,
		},
	}
}

// TestExceeded: each budget is reached at its limit and not before, and the
// first in the order turns, tool_calls, wall_clock, tokens, cost, runs is named.
func TestExceeded(t *testing.T) {
	limit := func(n int) map[string]*harnessv1.Budgets {
		return map[string]*harnessv1.Budgets{
			"turns":      {Turns: proto.Uint32(uint32(n))},
			"tool_calls": {ToolCalls: proto.Uint32(uint32(n))},
			"wall_clock": {WallClock: durationpb.New(time.Duration(n) * time.Second)},
			"tokens":     {Tokens: proto.Uint64(uint64(n))},
			"cost":       {CostUsd: proto.Float64(float64(n))},
			"runs":       {Runs: proto.Uint32(uint32(n))},
		}
	}
	for name, b := range limit(5) {
		s := spent()
		s.Config.Budgets = b
		if w := runstate.ExceededBudget(s, noon); w.GetBudget() != name || w.GetLimit() != 5 || w.GetUsed() != 5 {
			t.Errorf("at the limit of %s: %v", name, w)
		}
	}
	for name, b := range limit(6) {
		s := spent()
		s.Config.Budgets = b
		if w := runstate.ExceededBudget(s, noon); w != nil {
			t.Errorf("below the limit of %s: %v", name, w)
		}
	}
	if w := runstate.ExceededBudget(spent(), noon); w != nil {
		t.Errorf("without a budget: %v", w)
	}
	s := spent()
	for _, b := range limit(1) {
		proto.Merge(s.GetConfig().GetBudgets(), b)
	}
	b := s.GetConfig().GetBudgets()
	for _, step := range []struct {
		want string
		lift func()
	}{
		{"turns", func() { b.Turns = nil }}, {"tool_calls", func() { b.ToolCalls = nil }}, {"wall_clock", func() { b.WallClock = nil }},
		{"tokens", func() { b.Tokens = nil }}, {"cost", func() { b.CostUsd = nil }}, {"runs", func() { b.Runs = nil }}, {"", func() {}},
	} {
		if got := runstate.ExceededBudget(s, noon).GetBudget(); got != step.want {
			t.Errorf("first is %q, want %q", got, step.want)
		}
		step.lift()
	}
}

// TestRunsAreExceededOnceOneIsRefused: a run may use all of them, and one that may have none does not park.
func TestRunsAreExceededOnceOneIsRefused(t *testing.T) {
	s := spent()
	s.Config.Budgets.Runs = proto.Uint32(5)
	s.Spent.RunsRefused = 0
	if w := runstate.ExceededBudget(s, noon); w != nil {
		t.Errorf("before a call is refused: %v", w)
	}
	runstate.RefuseRun(s)
	if w := runstate.ExceededBudget(s, noon); w.GetBudget() != "runs" {
		t.Errorf("then: %v", w)
	}
	none := spent()
	none.Config.Budgets.Runs = proto.Uint32(0)
	if w := runstate.ExceededBudget(none, noon); w != nil {
		t.Errorf("a run that may have none: %v", w)
	}
	runstate.ExtendBudgets(s, &harnessv1.Budgets{Runs: proto.Uint32(5)})
	if s.GetSpent().GetRunsRefused() != 0 {
		t.Error("after an extension a former refusal counts")
	}
}

// TestClock: only time in which a run runs counts, and a clock that goes
// backwards takes nothing away.
func TestClock(t *testing.T) {
	s := &harnessv1.Snapshot{}
	runstate.StopClock(s, noon)
	if runstate.ActiveTime(s, noon) != 0 {
		t.Error("a run that never ran was active")
	}
	runstate.StartClock(s, noon)
	runstate.StartClock(s, noon.Add(time.Second)) // runs already
	if got := runstate.ActiveTime(s, noon.Add(5*time.Second)); got != 5*time.Second {
		t.Errorf("active %s", got)
	}
	if got := runstate.ActiveTime(s, noon.Add(-time.Hour)); got != 0 {
		t.Errorf("active %s before it ran", got)
	}
	runstate.StopClock(s, noon.Add(5*time.Second))
	runstate.StopClock(s, noon.Add(50*time.Second)) // parked
	runstate.StartClock(s, noon.Add(100*time.Second))
	if got := runstate.ActiveTime(s, noon.Add(101*time.Second)); got != 6*time.Second {
		t.Errorf("active %s, parked time counts", got)
	}
}

func TestDeadline(t *testing.T) {
	s := spent() // 3 s of the segment, since 2 s
	if _, ok := runstate.WallClockDeadline(s); ok {
		t.Error("a deadline without a budget")
	}
	s.Config.Budgets.WallClock = durationpb.New(10 * time.Second)
	at, ok := runstate.WallClockDeadline(s)
	if !ok || !at.Equal(noon.Add(5*time.Second)) {
		t.Errorf("deadline %s %v", at, ok)
	}
	if w := runstate.ExceededBudget(s, at); w.GetBudget() != "wall_clock" {
		t.Errorf("at the deadline: %v", w)
	}
	if w := runstate.ExceededBudget(s, at.Add(-time.Millisecond)); w != nil {
		t.Errorf("before the deadline: %v", w)
	}
	s.RunningSince = nil
	if _, ok := runstate.WallClockDeadline(s); ok {
		t.Error("a parked run has a deadline")
	}
}

func TestExtendReplacesWhatIsSet(t *testing.T) {
	s := &harnessv1.Snapshot{Config: runstate.Resolve(nil, 0)}
	runstate.ExtendBudgets(s, nil)
	runstate.ExtendBudgets(s, &harnessv1.Budgets{})
	if got := s.GetConfig().GetBudgets(); !proto.Equal(got, &harnessv1.Budgets{ToolCalls: proto.Uint32(300), AllowUnpriced: proto.Bool(false), Runs: proto.Uint32(64)}) {
		t.Errorf("nothing was extended, and now %v", got)
	}
	all := &harnessv1.Budgets{
		Turns: proto.Uint32(1), ToolCalls: proto.Uint32(2), WallClock: durationpb.New(3), Tokens: proto.Uint64(4), CostUsd: proto.Float64(5), AllowUnpriced: proto.Bool(true), Runs: proto.Uint32(6),
	}
	runstate.ExtendBudgets(s, all)
	if got := s.GetConfig().GetBudgets(); !proto.Equal(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
}

func TestAddUsage(t *testing.T) {
	s := &harnessv1.Snapshot{}
	for range 2 {
		runstate.AddUsage(s, &harnessv1.Usage{InputTokens: 1, OutputTokens: 2, CachedInputTokens: 3, CostMicroUsd: 4})
	}
	runstate.AddUsage(s, nil) // reported nothing
	want := &harnessv1.Spent{ModelCalls: 3, Usage: &harnessv1.Usage{InputTokens: 2, OutputTokens: 4, CachedInputTokens: 6, CostMicroUsd: 8}}
	if !proto.Equal(s.GetSpent(), want) {
		t.Errorf("spent %v", s.GetSpent())
	}
}
