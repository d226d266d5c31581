package gateway

import (
	"path"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func checkSpec(s *harnessv1.RunSpec) error {
	if s == nil {
		return fault.Invalid("spec", "must be set")
	}
	return input.First(
		func() error { return input.CheckText("spec.goal", s.GetGoal()) },
		func() error { return input.CheckMedia("spec.media", s.GetMedia()) },
		func() error { return checkSpecSize(s) },
		func() error { return checkAgent(s.GetAgent()) },
		func() error { return checkWorkspace(s.GetWorkspace()) },
		func() error { return checkWorkflow(s.GetWorkflow()) },
		func() error { return checkConfig(s.GetConfig()) },
		func() error { return CheckClientTools("spec.client_tools", s.GetClientTools()) },
		func() error { return checkDefinition(s) },
		func() error { return checkContract(s) },
	)
}

func checkAgent(a *harnessv1.AgentSpec) error {
	if err := input.First(
		func() error { return input.CheckSize("spec.agent.name", a.GetName(), input.MaxName) },
		func() error { return input.CheckSize("spec.agent.instructions", a.GetInstructions(), maxInstructions) },
		func() error { return input.CheckModel("spec.agent.model", a.GetModel()) },
		func() error { return checkEffort(a.GetReasoning().GetEffort()) },
		func() error { return tree.Check("spec.agent.agents", a.GetAgents(), mode.Names(a.GetModes())) },
		func() error { return checkSubAgents("spec.agent.agents", a.GetAgents()) },
	); err != nil {
		return err
	}
	if n := len(a.GetFallbackModels()); n > maxFallbackModels {
		return input.TooLarge("spec.agent.fallback_models", n, maxFallbackModels, "models")
	}
	for i, m := range a.GetFallbackModels() {
		field := input.At("spec.agent.fallback_models", i)
		if m == "" {
			return fault.Invalid(field, "must not be empty")
		}
		if err := input.CheckModel(field, m); err != nil {
			return err
		}
	}
	if n := len(a.GetTools()); n > maxToolRules {
		return input.TooLarge("spec.agent.tools", n, maxToolRules, "rules")
	}
	for i, rule := range a.GetTools() {
		field := input.At("spec.agent.tools", i)
		if !tool.ValidPattern(rule.GetName()) {
			return fault.Invalid(field+".name", "%q is no tool name: must match [A-Za-z0-9_-]{1,64}, with * for any characters", content.Cut(rule.GetName(), 80))
		}
		if _, ok := harnessv1.ToolDecision_name[int32(rule.GetPolicy())]; !ok {
			return fault.Invalid(field+".policy", "unknown policy %d: must be ALLOW, ASK or DENY", int32(rule.GetPolicy()))
		}
	}
	return nil
}

// checkSubAgents checks the models, budgets and contracts of sub-agents, at all levels.
func checkSubAgents(field string, agents []*harnessv1.SubAgent) error {
	for i, a := range agents {
		if err := input.First(
			func() error { return input.CheckModel(input.At(field, i)+".model", a.GetModel()) },
			func() error { return input.CheckBudgets(input.At(field, i)+".budgets", a.GetBudgets()) },
			func() error {
				if a.GetContract() == nil {
					return nil
				}
				return fault.In(input.At(field, i)+".contract", contract.Validate(a.GetContract()))
			},
			func() error { return checkSubAgents(input.At(field, i)+".agents", a.GetAgents()) },
		); err != nil {
			return err
		}
	}
	return nil
}

func checkEffort(effort harnessv1.Effort) error {
	if _, ok := harnessv1.Effort_name[int32(effort)]; !ok {
		return fault.Invalid("spec.agent.reasoning.effort", "unknown effort %d: must be NONE, MINIMAL, LOW, MEDIUM, HIGH, XHIGH or MAX", int32(effort))
	}
	return nil
}

func checkWorkspace(workspace string) error {
	const field = "spec.workspace"
	switch {
	case len(workspace) > maxPath:
		return input.TooLarge(field, len(workspace), maxPath, "bytes")
	case !path.IsAbs(workspace):
		return fault.Invalid(field, "%q: must be an absolute path", workspace)
	case strings.ContainsRune(workspace, 0):
		return fault.Invalid(field, "must not contain a NUL")
	}
	return nil
}

func checkWorkflow(cycle []string) error {
	const field = "spec.workflow"
	if len(cycle) == 0 {
		return nil
	}
	if len(cycle) > maxWorkflow {
		return input.TooLarge(field, len(cycle), maxWorkflow, "executors")
	}
	seen := map[string]bool{}
	for i, name := range cycle {
		if err := input.CheckName(input.At(field, i), name); err != nil {
			return err
		}
		if runlog.IsRest(name) {
			return fault.Invalid(input.At(field, i), "%q is reserved: it is the address of a parked or ended run", name)
		}
		if name == workflow.Inference {
			return fault.Invalid(input.At(field, i), "%q is a role that receives no steps", name)
		}
		if seen[name] {
			return fault.Invalid(input.At(field, i), "duplicate executor %q", name)
		}
		seen[name] = true
	}
	switch {
	case cycle[0] != workflow.Repair:
		return fault.Invalid(field, "must begin with repair")
	case cycle[len(cycle)-1] != workflow.StopDecision:
		return fault.Invalid(field, "must end with stopdecision")
	case !seen[workflow.Turn]:
		return fault.Invalid(field, "must contain turn")
	}
	return nil
}

func checkConfig(c *harnessv1.LoopConfig) error {
	stop, cont, model, tools := c.GetStop(), c.GetContinuation(), c.GetModel(), c.GetTools()
	return input.First(
		func() error {
			return input.CheckPositive("spec.config.stop.max_turns", stop == nil || stop.MaxTurns == nil, stop.GetMaxTurns())
		},
		func() error {
			if _, ok := harnessv1.StopPolicy_name[int32(stop.GetPolicy())]; !ok {
				return fault.Invalid("spec.config.stop.policy", "unknown policy %d: must be INTERACTIVE or STRICT", int32(stop.GetPolicy()))
			}
			return nil
		},
		func() error { return input.CheckSize("spec.config.continuation.text", cont.GetText(), input.MaxReason) },
		func() error { return checkContext(c.GetContext()) },
		func() error { return checkSandbox(c.GetSandbox()) },
		func() error {
			return input.CheckPositive("spec.config.model.max_tries", model == nil || model.MaxTries == nil, model.GetMaxTries())
		},
		func() error {
			return input.CheckDuration("spec.config.model.backoff_initial", model.GetBackoffInitial())
		},
		func() error { return input.CheckDuration("spec.config.model.backoff_max", model.GetBackoffMax()) },
		func() error { return input.CheckDuration("spec.config.model.idle_timeout", model.GetIdleTimeout()) },
		func() error { return input.CheckDuration("spec.config.model.outage_retry", model.GetOutageRetry()) },
		func() error { return input.CheckDuration("spec.config.tools.timeout", tools.GetTimeout()) },
		func() error {
			return input.CheckDuration("spec.config.tools.approval_timeout", tools.GetApprovalTimeout())
		},
		func() error { return input.CheckDuration("spec.config.tools.answer_timeout", tools.GetAnswerTimeout()) },
		func() error {
			return input.CheckPositive("spec.config.tools.shown_tokens", tools == nil || tools.ShownTokens == nil, tools.GetShownTokens())
		},
		func() error { return input.CheckBudgets("spec.config.budgets", c.GetBudgets()) },
		func() error { return checkJudgement(c) },
	)
}
