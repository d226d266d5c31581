package tree

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Spec returns what a child is started with. spec is that of the parent, s the parent's
// snapshot with its definitions, and goal the prompt of the call, stored for the child. The
// child has the parent's rules, hooks and settings, and its own definition within them.
func Spec(spec *harnessv1.RunSpec, s runstate.DefinitionFields, def *harnessv1.SubAgent, child *harnessv1.Child, goal *harnessv1.Content) *harnessv1.RunSpec {
	parent := spec.GetAgent()
	a := &harnessv1.AgentSpec{
		Name: def.GetName(), Instructions: def.GetInstructions(), Model: cmp.Or(def.GetModel(), s.GetModel()),
		Tools: parent.GetTools(), Hooks: parent.GetHooks(), Modes: parent.GetModes(), ContextProviders: parent.GetContextProviders(),
		Autonomous: s.GetAutonomous(), Mode: cmp.Or(def.GetMode(), mode.Execute), Reasoning: s.GetReasoning(), Agents: def.GetAgents(),
		OnlyTools: narrow(parent.GetOnlyTools(), def.GetTools()), ReadOnly: parent.GetReadOnly() || !child.GetWrites(), MaxAnswerWords: def.GetMaxAnswerWords(),
		Policies: slices.Clone(parent.GetPolicies()), Mcp: parent.GetMcp(), Skills: parent.GetSkills(), Web: parent.GetWeb(),
	}
	if len(def.GetPolicy()) > 0 {
		a.Policies = append(a.Policies, &harnessv1.ToolPolicy{Rules: def.GetPolicy()})
	}
	if def.GetModel() == "" {
		a.FallbackModels = s.GetFallbackModels()
	} else {
		a.Reasoning = nil
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
	setEnds(config, def)
	if def.GetModel() != "" && config.GetContext() != nil {
		config.Context.MaxInputTokens = nil // the window of another model
	}
	config.Budgets = child.GetLease()
	config.Quality = nil // the parent's work is judged, which has the result
	return proto.CloneOf(&harnessv1.RunSpec{
		Goal: goal, Agent: a, Workspace: s.GetWorkspace(), Workflow: spec.GetWorkflow(), Config: config, Contract: def.GetContract(),
	})
}

// setEnds sets how a child's work ends. A text without calls is its answer: reminders and rejections would cost as
// many turns as the work. A definition with a contract has the settings of the parent, and each has its own first.
func setEnds(config *harnessv1.LoopConfig, def *harnessv1.SubAgent) {
	require, prompts := def.RequireWorkComplete, def.MaxContinuationPrompts
	if def.GetContract() == nil {
		require, prompts = orZero(require), orZero(prompts)
	}
	if require != nil {
		if config.Stop == nil {
			config.Stop = &harnessv1.StopConfig{}
		}
		config.Stop.RequireWorkComplete = require
	}
	if prompts != nil {
		if config.Continuation == nil {
			config.Continuation = &harnessv1.ContinuationConfig{}
		}
		enabled := *prompts > 0
		config.Continuation.Enabled, config.Continuation.MaxPrompts = &enabled, prompts
	}
}

// orZero returns a setting, or zero if it is unset.
func orZero[T any](set *T) *T {
	if set == nil {
		return new(T)
	}
	return set
}

// ParentOf returns what a child knows of its parent, whose snapshot is s.
func ParentOf(run runlog.Run, s runstate.DefinitionFields, c *harnessv1.Child) *harnessv1.Parent {
	return &harnessv1.Parent{
		RunId: run.ID, FirstSequence: s.GetFirstSequence(), CallId: c.GetCallId(), Agent: c.GetAgent(),
		Depth: s.GetParent().GetDepth() + 1, RootRunId: cmp.Or(s.GetParent().GetRootRunId(), run.ID), Order: 1, Worktree: c.GetWorktree(),
		Plans: runstate.Mode(s) == mode.Plan,
	}
}

// FirstStep returns the first step of a child's run. s is the snapshot of its parent, started the message that the parent's run was
// started with, and goal and tools are stored for the child. Approvals that the parent has by now for the rest of its run hold for the
// child too.
func FirstStep(run runlog.Run, s *harnessv1.Snapshot, started *harnessv1.RepairTrigger, def *harnessv1.SubAgent, c *harnessv1.Child,
	goal, tools *harnessv1.Content, now time.Time,
) *harnessv1.Step {
	step := runstate.FirstStep(workflow.Repair, Spec(started.GetSpec(), s, def, c, goal), tools, s.GetStartedBy(), now)
	inheritSettings(step.GetRepairTrigger(), started)
	step.GetRepairTrigger().Parent, step.GetRepairTrigger().Folder = ParentOf(run, s, c), proto.CloneOf(s.GetFolder())
	runstate.ShareGrants(step.GetSnapshot(), s)
	return step
}

// inheritSettings gives the start of a sub-agent's run the settings that the installation and the token of the caller gave
// to its parent's. The work of a sub-agent is not judged, whatever a feature sets.
func inheritSettings(child, parent *harnessv1.RepairTrigger) {
	child.Entitlements, child.Tier, child.Features = parent.GetEntitlements(), parent.GetTier(), parent.GetFeatures()
	if parent.GetFeatureConfig() != nil {
		child.FeatureConfig = proto.CloneOf(parent.GetFeatureConfig())
		child.FeatureConfig.Quality = nil
	}
}
