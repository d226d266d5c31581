package tree

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Spec returns what a child is started with. spec is that of the parent, s the parent's
// snapshot with its definitions, and goal the prompt of the call, stored for the child. The
// child has the parent's rules, hooks and settings, and its own definition within them.
func Spec(spec *harnessv1.RunSpec, s *harnessv1.Snapshot, def *harnessv1.SubAgent, child *harnessv1.Child, goal *harnessv1.Content) *harnessv1.RunSpec {
	parent := spec.GetAgent()
	a := &harnessv1.AgentSpec{
		Name: def.GetName(), Instructions: def.GetInstructions(), Model: cmp.Or(def.GetModel(), s.GetModel()),
		Tools: parent.GetTools(), Hooks: parent.GetHooks(), Modes: parent.GetModes(), ContextProviders: parent.GetContextProviders(),
		Autonomous: s.GetAutonomous(), Mode: cmp.Or(def.GetMode(), mode.Execute), Reasoning: s.GetReasoning(), Agents: def.GetAgents(),
		OnlyTools: def.GetTools(), ReadOnly: parent.GetReadOnly() || def.GetReadOnly(), MaxAnswerWords: def.GetMaxAnswerWords(),
	}
	if def.GetModel() == "" {
		a.FallbackModels = s.GetFallbackModels()
	} else {
		a.Reasoning = nil
	}
	if runstate.Mode(s) == mode.Plan {
		a.Mode = mode.Plan
	}
	config := proto.CloneOf(spec.GetConfig())
	if config == nil {
		config = &harnessv1.LoopConfig{}
	}
	if def.MaxTurns != nil {
		if config.Stop == nil {
			config.Stop = &harnessv1.StopConfig{}
		}
		config.Stop.MaxTurns = def.MaxTurns
	}
	if def.GetModel() != "" && config.GetContext() != nil {
		config.Context.MaxInputTokens = nil // the window of another model
	}
	config.Budgets = child.GetLease()
	return proto.CloneOf(&harnessv1.RunSpec{
		Goal: goal, Agent: a, Workspace: s.GetWorkspace(), Workflow: spec.GetWorkflow(), Config: config, Contract: def.GetContract(),
	})
}

// ParentOf returns what a child knows of its parent, whose snapshot is s.
func ParentOf(run runlog.Run, s *harnessv1.Snapshot, c *harnessv1.Child) *harnessv1.Parent {
	return &harnessv1.Parent{
		RunId: run.ID, FirstSequence: s.GetFirstSequence(), CallId: c.GetCallId(), Agent: c.GetAgent(),
		Depth: s.GetParent().GetDepth() + 1, RootRunId: cmp.Or(s.GetParent().GetRootRunId(), run.ID), Order: 1, Worktree: c.GetWorktree(),
	}
}

// Lease returns what a child may use up at the start: a quarter of what the parent has left
// in tokens and cost, at least 20,000 tokens and 2 cents, and at most what its definition
// says. ok is false if nothing is left. Unset: no limit.
func Lease(s *harnessv1.Snapshot, def *harnessv1.SubAgent) (lease *harnessv1.Budgets, ok bool) {
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
			return nil, false
		}
		share := min(max(left.GetTokens()/4, minTokens), left.GetTokens())
		if lease.Tokens == nil || lease.GetTokens() > share {
			lease.Tokens = &share
		}
	}
	if left.CostUsd != nil {
		if left.GetCostUsd() <= 0 {
			return nil, false
		}
		share := min(max(left.GetCostUsd()/4, minCost), left.GetCostUsd())
		if lease.CostUsd == nil || lease.GetCostUsd() > share {
			lease.CostUsd = &share
		}
	}
	return lease, true
}

// The least that a child gets while there is as much.
const (
	minTokens = 20_000
	minCost   = 0.02
)

// More returns a greater lease for a child that has used up its own, by the rule of Lease.
// ok is false if nothing is left, or if its definition allows no more.
func More(s *harnessv1.Snapshot, def *harnessv1.SubAgent, c *harnessv1.Child) (lease *harnessv1.Budgets, ok bool) {
	lease, left := proto.CloneOf(c.GetLease()), remaining(s)
	if lease == nil {
		return nil, false
	}
	grown := false
	if lease.Tokens != nil && left.Tokens != nil {
		used := runstate.TotalTokens(usedSince(c.GetUsageBefore(), c.GetReport().GetUsage()))
		most := used + min(max(left.GetTokens()/4, minTokens), left.GetTokens())
		if def.GetBudgets().GetTokens() > 0 {
			most = min(most, def.GetBudgets().GetTokens())
		}
		grown = grown || most > lease.GetTokens()
		lease.Tokens = proto.Uint64(max(most, lease.GetTokens()))
	}
	if lease.CostUsd != nil && left.CostUsd != nil {
		used := float64(usedSince(c.GetUsageBefore(), c.GetReport().GetUsage()).GetCostMicroUsd()) / 1e6
		most := used + min(max(left.GetCostUsd()/4, minCost), left.GetCostUsd())
		if def.GetBudgets().GetCostUsd() > 0 {
			most = min(most, def.GetBudgets().GetCostUsd())
		}
		grown = grown || most > lease.GetCostUsd()
		lease.CostUsd = proto.Float64(max(most, lease.GetCostUsd()))
	}
	return lease, grown
}

// remaining returns what a run has left of its budgets of tokens and cost, without what it
// has leased to children that have not ended and not used it yet. Unset: no limit.
func remaining(s *harnessv1.Snapshot) *harnessv1.Budgets {
	b, spent := s.GetConfig().GetBudgets(), s.GetSpent()
	left := &harnessv1.Budgets{}
	var leasedTokens uint64
	var leasedCost float64
	for _, c := range s.GetChildren() {
		if queued(c) || Ended(c) {
			continue
		}
		used := usedSince(c.GetUsageBefore(), c.GetReport().GetUsage())
		leasedTokens += c.GetLease().GetTokens() - min(c.GetLease().GetTokens(), runstate.TotalTokens(used))
		leasedCost += max(0, c.GetLease().GetCostUsd()-float64(used.GetCostMicroUsd())/1e6)
	}
	if b != nil && b.Tokens != nil {
		taken := runstate.TotalTokens(spent.GetUsage()) - min(runstate.TotalTokens(spent.GetUsage()), runstate.TotalTokens(spent.GetUsageBeforeSegment())) + leasedTokens
		left.Tokens = proto.Uint64(b.GetTokens() - min(b.GetTokens(), taken))
	}
	if b != nil && b.CostUsd != nil {
		taken := float64(spent.GetUsage().GetCostMicroUsd()-min(spent.GetUsage().GetCostMicroUsd(), spent.GetUsageBeforeSegment().GetCostMicroUsd()))/1e6 + leasedCost
		left.CostUsd = proto.Float64(max(0, b.GetCostUsd()-taken))
	}
	return left
}
