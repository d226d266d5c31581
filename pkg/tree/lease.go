package tree

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// The least that a child gets while there is as much.
const (
	minTokens = 20_000
	minCost   = 0.02
	minRuns   = 1
)

// budgetExceeded is the prefix of the kinds of parks for a budget; the budget follows.
const budgetExceeded = "budget_exceeded:"

// Lease returns the budgets of a child from its start, or from where it is continued: a quarter of the tokens, cost
// and runs that the parent has left, at least 20,000 tokens, 2 cents and, if it may delegate, one run, and at most
// those of its definition. broke names an exhausted budget of the parent; empty if there is none. Unset: no limit.
func Lease(s *harnessv1.Snapshot, def *harnessv1.SubAgent, c *harnessv1.Child) (lease *harnessv1.Budgets, broke string) {
	lease = proto.CloneOf(def.GetBudgets())
	if lease == nil {
		lease = &harnessv1.Budgets{}
	}
	if b := s.GetConfig().GetBudgets(); b != nil {
		lease.AllowUnpriced = b.AllowUnpriced
	}
	left := remaining(s)
	if left.Tokens != nil {
		if left.GetTokens() == 0 {
			return nil, "tokens"
		}
		lease.Tokens = least(lease.Tokens, share(left.GetTokens(), minTokens))
	}
	if left.CostUsd != nil {
		if left.GetCostUsd() <= 0 {
			return nil, "cost"
		}
		lease.CostUsd = least(lease.CostUsd, share(left.GetCostUsd(), minCost))
	}
	if left.Runs != nil && c.GetContinuedBy() == "" {
		if left.GetRuns() == 0 {
			return nil, "runs"
		}
		*left.Runs-- // the child itself
	}
	switch {
	case len(def.GetAgents()) == 0:
		lease.Runs = nil
	case left.Runs != nil:
		lease.Runs = least(lease.Runs, share(left.GetRuns(), minRuns))
	}
	return lease, ""
}

// share returns a child's part of the remaining amount: a quarter, at least floor.
func share[T uint32 | uint64 | float64](left, floor T) T { return min(max(left/4, floor), left) }

// least returns the smaller limit; nil is none.
func least[T uint32 | uint64 | float64](limit *T, other T) *T {
	if limit != nil && *limit <= other {
		return limit
	}
	return &other
}

// Lacks returns the budget of which a child needs more than its lease, by its newest report: it has used it up, or one of its calls
// waits for it. Empty: none.
func Lacks(c *harnessv1.Child) string {
	r := c.GetReport()
	if name, used := strings.CutPrefix(r.GetReason().GetKind(), budgetExceeded); used {
		return name
	}
	return r.GetShort()
}

// More returns a greater lease for a child that lacks a budget, by the rule of Lease.
// ok is false if nothing is left of that, or if its definition allows no more.
func More(s *harnessv1.Snapshot, def *harnessv1.SubAgent, c *harnessv1.Child) (lease *harnessv1.Budgets, ok bool) {
	lease, left, r, which := proto.CloneOf(c.GetLease()), remaining(s), c.GetReport(), Lacks(c)
	if lease == nil {
		return nil, false
	}
	used := usedSince(c.GetUsageBefore(), r.GetUsage())
	grown := map[string]bool{}
	if lease.Tokens != nil && left.Tokens != nil {
		most := base(which == "tokens", runstate.TotalTokens(used), lease.GetTokens()) + share(left.GetTokens(), minTokens)
		if limit := def.GetBudgets(); limit != nil && limit.Tokens != nil {
			most = min(most, limit.GetTokens())
		}
		grown["tokens"] = most > lease.GetTokens()
		lease.Tokens = proto.Uint64(max(most, lease.GetTokens()))
	}
	if lease.CostUsd != nil && left.CostUsd != nil {
		most := base(which == "cost", float64(used.GetCostMicroUsd())/1e6, lease.GetCostUsd()) + share(left.GetCostUsd(), minCost)
		if limit := def.GetBudgets(); limit != nil && limit.CostUsd != nil {
			most = min(most, limit.GetCostUsd())
		}
		grown["cost"] = most > lease.GetCostUsd()
		lease.CostUsd = proto.Float64(max(most, lease.GetCostUsd()))
	}
	if lease.Runs != nil && left.Runs != nil {
		most := base(which == "runs", runsOf(c), lease.GetRuns()) + share(left.GetRuns(), minRuns)
		if limit := def.GetBudgets(); limit != nil && limit.Runs != nil {
			most = min(most, limit.GetRuns())
		}
		grown["runs"] = most > lease.GetRuns()
		lease.Runs = proto.Uint32(max(most, lease.GetRuns()))
	}
	return lease, grown[which]
}

// exhausted returns the budget for which a child is parked, if it is the child's definition that sets the limit: neither its parent nor a
// user of the tree can give it more. Empty: it is not parked for a budget, or the limit is that of a run above or of all runs.
func exhausted(c *harnessv1.Child, def *harnessv1.SubAgent) string {
	reason, limit, lease := c.GetReport().GetReason(), def.GetBudgets(), c.GetLease()
	budget, parked := strings.CutPrefix(reason.GetKind(), budgetExceeded)
	if !parked || !Idle(c) {
		return ""
	}
	own := reason.GetDetails().GetRunId() == "" // not that of a run below it
	var set bool
	switch budget {
	case "tokens":
		set = limit != nil && limit.Tokens != nil && lease.GetTokens() >= limit.GetTokens()
	case "cost":
		set = limit != nil && limit.CostUsd != nil && lease.GetCostUsd() >= limit.GetCostUsd()
	case "turns":
		set = own && limit != nil && limit.Turns != nil
	case "tool_calls":
		set = own && limit != nil && limit.ToolCalls != nil
	case "wall_clock":
		set = own && limit.GetWallClock() != nil
	}
	if !set {
		return ""
	}
	return budget
}

// base returns the amount from which a lease grows: its used part, or, if all of it is needed, all of it.
func base[T uint32 | uint64 | float64](lacks bool, used, lease T) T {
	if lacks {
		return max(used, lease)
	}
	return used
}

// Refuses reports whether a child that lacks runs, and gets no greater lease, never gets one: its definition allows no more, or
// nothing more comes from above and nothing below works that might leave some. final is true if nothing comes from above: the run is a root,
// or its parent has refused it more.
func Refuses(s *harnessv1.Snapshot, c *harnessv1.Child, final bool) bool {
	if Lacks(c) != "runs" {
		return false // of a budget that a user can extend, the run is parked for it
	}
	if left := remaining(s); left.Runs == nil || left.GetRuns() > 0 {
		return true
	}
	return final && !slices.ContainsFunc(Wanted(s), func(o *harnessv1.Child) bool { return !Idle(o) })
}

// runsOf returns how many runs a child has started since its lease began.
func runsOf(c *harnessv1.Child) uint32 {
	return c.GetReport().GetRuns() - min(c.GetReport().GetRuns(), c.GetRunsBefore())
}

// LeasedOut reports whether what a run has left of its tokens or cost is leased to children that work in the background: it takes no
// turn until one of them has ended, and returned some.
func LeasedOut(s *harnessv1.Snapshot) bool {
	left := remaining(s)
	works := func(c *harnessv1.Child) bool { return !queued(c) && !Ended(c) }
	return slices.ContainsFunc(InBackground(s), works) && (left.Tokens != nil && left.GetTokens() == 0 || left.CostUsd != nil && left.GetCostUsd() <= 0)
}

// remaining returns what a run has left of its budgets of tokens, cost and runs, without what it
// has leased to children that have not ended and not used it yet. Unset: no limit.
func remaining(s *harnessv1.Snapshot) *harnessv1.Budgets {
	b, spent := s.GetConfig().GetBudgets(), s.GetSpent()
	left := &harnessv1.Budgets{}
	var leasedTokens uint64
	var leasedCost float64
	var leasedRuns uint32
	for _, c := range s.GetChildren() {
		if queued(c) || Ended(c) {
			continue
		}
		used := usedSince(c.GetUsageBefore(), c.GetReport().GetUsage())
		leasedTokens += c.GetLease().GetTokens() - min(c.GetLease().GetTokens(), runstate.TotalTokens(used))
		leasedCost += max(0, c.GetLease().GetCostUsd()-float64(used.GetCostMicroUsd())/1e6)
		leasedRuns += c.GetLease().GetRuns() - min(c.GetLease().GetRuns(), runsOf(c))
	}
	if b != nil && b.Tokens != nil {
		taken := runstate.TotalTokens(spent.GetUsage()) - min(runstate.TotalTokens(spent.GetUsage()), runstate.TotalTokens(spent.GetUsageBeforeSegment())) + leasedTokens
		left.Tokens = proto.Uint64(b.GetTokens() - min(b.GetTokens(), taken))
	}
	if b != nil && b.CostUsd != nil {
		taken := float64(spent.GetUsage().GetCostMicroUsd()-min(spent.GetUsage().GetCostMicroUsd(), spent.GetUsageBeforeSegment().GetCostMicroUsd()))/1e6 + leasedCost
		left.CostUsd = proto.Float64(max(0, b.GetCostUsd()-taken))
	}
	if b != nil && b.Runs != nil {
		taken := runstate.RunsUsed(s) + leasedRuns
		left.Runs = proto.Uint32(b.GetRuns() - min(b.GetRuns(), taken))
	}
	return left
}
