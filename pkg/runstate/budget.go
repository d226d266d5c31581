package runstate

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Exceeded returns the first budget of the segment that is used up at now, in
// the order turns, tool_calls, wall_clock, tokens, cost; nil when none is.
func Exceeded(s *harnessv1.Snapshot, now time.Time) *harnessv1.BudgetWarn {
	b, spent := s.GetConfig().GetBudgets(), s.GetSpent()
	if b == nil {
		return nil
	}
	reached := func(name string, limit, used float64) *harnessv1.BudgetWarn {
		if used < limit {
			return nil
		}
		return &harnessv1.BudgetWarn{Budget: name, Limit: limit, Used: used}
	}
	if b.Turns != nil {
		if w := reached("turns", float64(b.GetTurns()), float64(spent.GetTurns())); w != nil {
			return w
		}
	}
	if b.ToolCalls != nil {
		if w := reached("tool_calls", float64(b.GetToolCalls()), float64(spent.GetToolCalls())); w != nil {
			return w
		}
	}
	if b.GetWallClock() != nil {
		used := ActiveTime(s, now) - spent.GetActiveBeforeSegment().AsDuration()
		if w := reached("wall_clock", b.GetWallClock().AsDuration().Seconds(), used.Seconds()); w != nil {
			return w
		}
	}
	usage, before := spent.GetUsage(), spent.GetUsageBeforeSegment()
	if b.Tokens != nil {
		used := usage.GetInputTokens() + usage.GetOutputTokens() - before.GetInputTokens() - before.GetOutputTokens()
		if w := reached("tokens", float64(b.GetTokens()), float64(used)); w != nil {
			return w
		}
	}
	if b.CostUsd != nil {
		used := float64(usage.GetCostMicroUsd()-before.GetCostMicroUsd()) / 1e6
		if w := reached("cost", b.GetCostUsd(), used); w != nil {
			return w
		}
	}
	return nil
}

// Deadline is when the wall-clock budget of the segment ends if the run goes
// on without a pause; ok is false when there is no such budget.
func Deadline(s *harnessv1.Snapshot) (deadline time.Time, ok bool) {
	limit := s.GetConfig().GetBudgets().GetWallClock()
	if limit == nil || s.GetRunningSince() == nil {
		return time.Time{}, false
	}
	used := s.GetSpent().GetActive().AsDuration() - s.GetSpent().GetActiveBeforeSegment().AsDuration()
	return s.GetRunningSince().AsTime().Add(limit.AsDuration() - used), true
}

// ActiveTime is the time spent running up to now; parked time does not count.
func ActiveTime(s *harnessv1.Snapshot, now time.Time) time.Duration {
	active := s.GetSpent().GetActive().AsDuration()
	if since := s.GetRunningSince(); since != nil {
		active += max(now.Sub(since.AsTime()), 0)
	}
	return active
}

// StopClock adds the time since the run was taken up to what it has spent. It
// changes s.
func StopClock(s *harnessv1.Snapshot, now time.Time) {
	if s.GetRunningSince() == nil {
		return
	}
	spentOf(s).Active = durationpb.New(ActiveTime(s, now))
	s.RunningSince = nil
}

// StartClock notes that the run is taken up at now. It changes s.
func StartClock(s *harnessv1.Snapshot, now time.Time) {
	if s.GetRunningSince() == nil {
		s.RunningSince = timestamppb.New(now)
	}
}

// Extend replaces the budgets of s by those that are set in b. It changes s.
func Extend(s *harnessv1.Snapshot, b *harnessv1.Budgets) {
	if b == nil {
		return
	}
	have := s.GetConfig().GetBudgets()
	if b.Turns != nil {
		have.Turns = b.Turns
	}
	if b.ToolCalls != nil {
		have.ToolCalls = b.ToolCalls
	}
	if b.WallClock != nil {
		have.WallClock = b.WallClock
	}
	if b.Tokens != nil {
		have.Tokens = b.Tokens
	}
	if b.CostUsd != nil {
		have.CostUsd = b.CostUsd
	}
}

// Below returns the first budget in b that is not above what the segment has used
// at now, so that a run given it would park again at once; nil when there is none.
func Below(s *harnessv1.Snapshot, b *harnessv1.Budgets, now time.Time) *harnessv1.BudgetWarn {
	if b == nil {
		return nil
	}
	return Exceeded(&harnessv1.Snapshot{
		Config: &harnessv1.LoopConfig{Budgets: b}, Spent: s.GetSpent(), RunningSince: s.GetRunningSince(),
	}, now)
}

// BudgetField is the field of Budgets that holds a budget by the name that
// Exceeded gives it.
func BudgetField(name string) string {
	if name == "cost" {
		return "cost_usd"
	}
	return name
}

func spentOf(s *harnessv1.Snapshot) *harnessv1.Spent {
	if s.Spent == nil {
		s.Spent = &harnessv1.Spent{}
	}
	return s.Spent
}

// AddUsage adds what a model call used. It changes s.
func AddUsage(s *harnessv1.Snapshot, u *harnessv1.Usage) {
	spent := spentOf(s)
	if spent.Usage == nil {
		spent.Usage = &harnessv1.Usage{}
	}
	spent.Usage.InputTokens += u.GetInputTokens()
	spent.Usage.OutputTokens += u.GetOutputTokens()
	spent.Usage.CachedInputTokens += u.GetCachedInputTokens()
	spent.Usage.CostMicroUsd += u.GetCostMicroUsd()
	spent.ModelCalls++
}
