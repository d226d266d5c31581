package runstate

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ExceededBudget returns the first budget of the segment that is used up at now,
// in the order turns, tool_calls, wall_clock, tokens, cost, runs; nil if none is.
func ExceededBudget(s *harnessv1.Snapshot, now time.Time) *harnessv1.BudgetWarn {
	b, spent := s.GetConfig().GetBudgets(), s.GetSpent()
	if b == nil {
		return nil
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
	if w := ExceededTime(s, now); w != nil {
		return w
	}
	usage, before := spent.GetUsage(), spent.GetUsageBeforeSegment()
	if b.Tokens != nil {
		used := since(TotalTokens(usage), TotalTokens(before))
		if w := reached("tokens", float64(b.GetTokens()), float64(used)); w != nil {
			return w
		}
	}
	if b.CostUsd != nil {
		used := float64(since(usage.GetCostMicroUsd(), before.GetCostMicroUsd())) / 1e6
		if w := reached("cost", b.GetCostUsd(), used); w != nil {
			return w
		}
	}
	if b.GetRuns() > 0 && spent.GetRunsRefused() > 0 { // a run may use all of them, and one without any is never extended
		return reached("runs", float64(b.GetRuns()), float64(RunsUsed(s)))
	}
	return nil
}

// ExceededTime returns the budget of wall-clock time of the segment if it is used up at now; nil if it is not, or there is none.
func ExceededTime(s *harnessv1.Snapshot, now time.Time) *harnessv1.BudgetWarn {
	limit := s.GetConfig().GetBudgets().GetWallClock()
	if limit == nil {
		return nil
	}
	used := ActiveTime(s, now) - s.GetSpent().GetActiveBeforeSegment().AsDuration()
	return reached("wall_clock", limit.AsDuration().Seconds(), used.Seconds())
}

func reached(name string, limit, used float64) *harnessv1.BudgetWarn {
	if used < limit {
		return nil
	}
	return &harnessv1.BudgetWarn{Budget: name, Limit: limit, Used: used}
}

// RunsUsed returns how many runs of sub-agents the segment has started, at all levels below.
func RunsUsed(s RuleFields) uint32 {
	return s.GetSpent().GetRuns() - min(s.GetSpent().GetRuns(), s.GetSpent().GetRunsBeforeSegment())
}

// AddRuns counts runs of sub-agents that were started. It changes s.
func AddRuns(s *harnessv1.Snapshot, n uint32) {
	if n > 0 {
		spentOf(s).Runs += n
	}
}

// RefuseRun counts a call that got no run. It changes s.
func RefuseRun(s *harnessv1.Snapshot) { spentOf(s).RunsRefused++ }

// WallClockDeadline returns when the wall-clock budget of the segment is used up
// if the run does not pause. ok is false if there is no such budget.
func WallClockDeadline(s *harnessv1.Snapshot) (deadline time.Time, ok bool) {
	limit := s.GetConfig().GetBudgets().GetWallClock()
	if limit == nil || s.GetRunningSince() == nil {
		return time.Time{}, false
	}
	used := s.GetSpent().GetActive().AsDuration() - s.GetSpent().GetActiveBeforeSegment().AsDuration()
	return s.GetRunningSince().AsTime().Add(limit.AsDuration() - used), true
}

// ActiveTime returns the time that the run was running until now. Parked time does
// not count.
func ActiveTime(s RuleFields, now time.Time) time.Duration {
	active := s.GetSpent().GetActive().AsDuration()
	if since := s.GetRunningSince(); since != nil {
		active += max(now.Sub(since.AsTime()), 0)
	}
	return active
}

// StopClock adds the time since StartClock to the active time. It changes s.
func StopClock(s *harnessv1.Snapshot, now time.Time) {
	if s.GetRunningSince() == nil {
		return
	}
	spentOf(s).Active = durationpb.New(ActiveTime(s, now))
	s.RunningSince = nil
}

// StartClock starts to count active time at now, if it is not counted yet. It
// changes s.
func StartClock(s *harnessv1.Snapshot, now time.Time) {
	if s.GetRunningSince() == nil {
		s.RunningSince = timestamppb.New(now)
	}
}

// ExtendBudgets replaces the budgets of s with those that are set in b. It changes s.
func ExtendBudgets(s *harnessv1.Snapshot, b *harnessv1.Budgets) {
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
	if b.AllowUnpriced != nil {
		have.AllowUnpriced = b.AllowUnpriced
	}
	if b.Runs != nil {
		have.Runs = b.Runs
		if s.GetSpent().GetRunsRefused() > 0 {
			s.Spent.RunsRefused = 0
		}
	}
}

// BudgetsWith returns the budgets of s as ExtendBudgets would leave them.
func BudgetsWith(s DefinitionFields, b *harnessv1.Budgets) *harnessv1.Budgets {
	with := &harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Budgets: proto.CloneOf(s.GetConfig().GetBudgets())}}
	if with.GetConfig().GetBudgets() == nil {
		with.Config.Budgets = &harnessv1.Budgets{}
	}
	ExtendBudgets(with, b)
	return with.GetConfig().GetBudgets()
}

// InsufficientBudget returns the first budget in b that the segment has used up at
// now, so that a run with it would park again immediately; nil if there is none.
func InsufficientBudget(s RuleFields, b *harnessv1.Budgets, now time.Time) *harnessv1.BudgetWarn {
	if b == nil {
		return nil
	}
	return ExceededBudget(&harnessv1.Snapshot{
		Config: &harnessv1.LoopConfig{Budgets: b}, Spent: s.GetSpent(), RunningSince: s.GetRunningSince(),
	}, now)
}

// BudgetField returns the field of Budgets for the name of a budget in
// ExceededBudget.
func BudgetField(name string) string {
	if name == "cost" {
		return "cost_usd"
	}
	return name
}

// StartChildren counts the children that s has as those of earlier segments. It changes s.
func StartChildren(s *harnessv1.Snapshot) {
	spentOf(s).ChildrenBeforeSegment = uint32(len(s.GetChildren())) //nolint:gosec // few: the ledger of children is bounded
}

func spentOf(s *harnessv1.Snapshot) *harnessv1.Spent {
	if s.Spent == nil {
		s.Spent = &harnessv1.Spent{}
	}
	return s.Spent
}

// AddUsage adds the usage of a model call. It changes s.
func AddUsage(s *harnessv1.Snapshot, u *harnessv1.Usage) {
	AddTokens(s, u)
	spentOf(s).ModelCalls++
}

// AddTokens adds the usage of a request that is no model call of the run, such as one
// that was refused; nil adds nothing. It changes s.
func AddTokens(s *harnessv1.Snapshot, u *harnessv1.Usage) {
	if u == nil {
		return
	}
	spent := spentOf(s)
	if spent.Usage == nil {
		spent.Usage = &harnessv1.Usage{}
	}
	SumUsage(spent.Usage, u)
}
