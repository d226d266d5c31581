package gateway

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// checkSpecSize bounds the spec in the first record; a large goal is stored separately.
func checkSpecSize(s *harnessv1.RunSpec) error {
	n := proto.Size(s) - proto.Size(s.GetGoal())
	for _, m := range s.GetMedia() {
		n -= proto.Size(m)
	}
	if n > maxSpec {
		return input.TooLarge("spec", n, maxSpec, "bytes without its goal and media")
	}
	return nil
}

// checkDefinition refuses an agent whose policy, rules, hooks, modes, templates or
// providers are invalid.
func checkDefinition(s *harnessv1.RunSpec) error {
	const agent = "spec.agent"
	a := s.GetAgent()
	return input.First(
		func() error {
			if n := len(a.GetPolicies()); n > tree.MaxDepth+1 {
				return input.TooLarge(agent+".policies", n, tree.MaxDepth+1, "policies")
			}
			for i, p := range a.GetPolicies() {
				if n := len(p.GetRules()); n > maxToolRules {
					return input.TooLarge(input.At(agent+".policies", i)+".rules", n, maxToolRules, "rules")
				}
			}
			_, err := policy.Compile(a.GetTools(), a.GetPolicies()...)
			return fault.In(agent, err)
		},
		func() error { return checkPolicies(agent+".agents", a.GetAgents()) },
		func() error {
			_, err := jit.Compile(a.GetJit())
			return fault.In(agent, err)
		},
		func() error {
			_, err := hook.Compile(a.GetHooks())
			return fault.In(agent, err)
		},
		func() error { return fault.In(agent, mode.Check(a.GetModes())) },
		func() error {
			if m := a.GetMode(); m != "" && !mode.Exists(m, a.GetModes()) {
				return input.UnknownMode(agent+".mode", m, a.GetModes())
			}
			return nil
		},
		func() error { return fault.In(agent, workitem.CheckTemplates(a.GetWorkItemTemplates())) },
		func() error {
			if len(a.GetWorkItemTemplates()) > 0 && !s.GetConfig().GetWorkItems().GetEnabled() {
				return fault.Invalid(agent+".work_item_templates", "the run has no work items: set spec.config.work_items.enabled")
			}
			return nil
		},
		func() error { return checkProviders(agent+".context_providers", a.GetContextProviders()) },
		func() error { return checkOutputSchema(s.GetOutputSchema()) },
		func() error { return tree.CheckGraph("spec.graph", s.GetGraph(), tree.Resolve(a.GetAgents())) },
		func() error { return checkServers(a.GetMcp()) },
		func() error { return checkSkills(a.GetSkills()) },
		func() error { return fault.In(agent+".web", webtool.Check(a.GetWeb())) },
		func() error { return checkQuality(s) },
		func() error {
			return tree.CheckSwarm(agent+".swarm", a.GetSwarm(), a.GetAgents(), quality.Names(a.GetKinds()))
		},
	)
}

// checkPolicies refuses sub-agents, at all levels, whose policies are invalid.
func checkPolicies(field string, agents []*harnessv1.SubAgent) error {
	for i, a := range agents {
		if n := len(a.GetPolicy()); n > maxToolRules {
			return input.TooLarge(input.At(field, i)+".policy", n, maxToolRules, "rules")
		}
		if err := policy.Check(input.At(field, i)+".policy", a.GetPolicy()); err != nil {
			return err
		}
		if err := checkPolicies(input.At(field, i)+".agents", a.GetAgents()); err != nil {
			return err
		}
	}
	return nil
}

// checkOutputSchema refuses a schema of the result that cannot be used.
func checkOutputSchema(text string) error {
	if text == "" {
		return nil
	}
	s, err := schema.Compile(text, false)
	if err != nil {
		return fault.Invalid("spec.output_schema", "%s", err)
	}
	if why := s.Contradiction(); why != "" {
		return fault.Invalid("spec.output_schema", "no output could fit it: %s", why)
	}
	return nil
}

// checkContract refuses a contract that cannot be verified.
func checkContract(s *harnessv1.RunSpec) error {
	const field = "spec.contract"
	c := s.GetContract()
	if c == nil {
		return nil
	}
	if err := fault.In(field, contract.Validate(c)); err != nil {
		return err
	}
	for i, q := range c.GetQuestions() {
		if q.GetRequired() && s.GetAgent().GetAutonomous() {
			return fault.Invalid(input.At(field+".questions", i)+".required",
				"required, but the agent is autonomous, so no user can answer it: put the answer into the goal, or leave autonomous out")
		}
	}
	if err := checkMaySave(field, s); err != nil {
		return err
	}
	if s.GetConfig().GetWorkItems().GetEnabled() || s.GetConfig().GetQuality().GetEnabled() || len(contract.ArtifactKinds(c)) > 0 {
		return nil
	}
	for i, o := range c.GetRequiredOutputs() {
		if strings.HasPrefix(o.GetPredicate().GetIn(), "artifact:") {
			return fault.Invalid(input.At(field+".required_outputs", i)+".predicate.in",
				"names an artifact, and the run has neither work items nor saved artifacts: set spec.config.work_items.enabled or spec.config.quality.enabled, "+
					"or add an output that counts artifacts")
		}
	}
	return nil
}

// checkMaySave refuses a contract that counts artifacts if the rules of the agent deny every call
// that saves one.
func checkMaySave(field string, s *harnessv1.RunSpec) error {
	rules, err := policy.Compile(s.GetAgent().GetTools())
	if err != nil || rules.Restricts(workitem.SaveArtifact) {
		return err
	}
	if d, _ := rules.Decide(&harnessv1.ToolSpec{Name: workitem.SaveArtifact}, "{}", policy.Exemptions{}); d != harnessv1.ToolDecision_TOOL_DECISION_DENY {
		return nil
	}
	for i, o := range s.GetContract().GetRequiredOutputs() {
		if o.GetPredicate().GetType() == harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT && !o.GetOptional() {
			return fault.Invalid(input.At(field+".required_outputs", i)+".predicate.type",
				"counts artifacts, and the rules of the agent deny %s: allow it after the rule that denies it", workitem.SaveArtifact)
		}
	}
	return nil
}

// checkProviders refuses context providers without a unique name, and those without
// exactly one of text and grpc.
func checkProviders(field string, providers []*harnessv1.ContextProvider) error {
	if n := len(providers); n > maxProviders {
		return input.TooLarge(field, n, maxProviders, "providers")
	}
	seen := map[string]bool{}
	for i, p := range providers {
		of := input.At(field, i)
		switch name := p.GetName(); {
		case strings.TrimSpace(name) == "":
			return fault.Invalid(of+".name", "must not be empty: it is the heading of the section")
		case strings.ContainsAny(name, "\r\n"):
			return fault.Invalid(of+".name", "must be one line: it is the heading of the section")
		case len(name) > input.MaxName:
			return input.TooLarge(of+".name", len(name), input.MaxName, "bytes")
		case seen[name]:
			return fault.Invalid(of+".name", "duplicate name %q", name)
		}
		seen[p.GetName()] = true
		switch {
		case p.GetText() != "" && p.GetGrpc() != "":
			return fault.Invalid(of, "has both text and grpc: give one of them")
		case p.GetText() == "" && p.GetGrpc() == "":
			return fault.Invalid(of, "has neither text nor grpc: give one of them")
		case len(p.GetText()) > maxContextText:
			return input.TooLarge(of+".text", len(p.GetText()), maxContextText, "bytes")
		case p.GetGrpc() != "" && !isTarget(p.GetGrpc()):
			return fault.Invalid(of+".grpc", "%q: must be HOST:PORT", p.GetGrpc())
		}
	}
	return nil
}

// isTarget reports whether a text is HOST:PORT.
func isTarget(text string) bool {
	i := strings.LastIndexByte(text, ':')
	if i <= 0 || len(text) > input.MaxName || strings.ContainsAny(text, " \t\r\n/@") {
		return false
	}
	port, err := strconv.ParseUint(text[i+1:], 10, 16)
	host := text[:i]
	return err == nil && port > 0 && (!strings.Contains(host, ":") || strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"))
}

// checkJudgement refuses invalid settings of stall detection and hooks.
func checkJudgement(c *harnessv1.LoopConfig) error {
	const stall, hooks = "spec.config.stall.threshold", "spec.config.hooks.timeout"
	if s := c.GetStall(); s != nil && s.Threshold != nil && (s.GetThreshold() < 2 || s.GetThreshold() > maxStall) {
		return fault.Invalid(stall, "%d: must be from 2 to %d", s.GetThreshold(), maxStall)
	}
	if err := input.CheckDuration(hooks, c.GetHooks().GetTimeout()); err != nil {
		return err
	}
	if d := c.GetHooks().GetTimeout().AsDuration(); d > MaxHookTimeout {
		return fault.Invalid(hooks, "%v exceeds %v", d, MaxHookTimeout)
	}
	return nil
}

// MaxHookTimeout bounds the time that a hook may take.
const MaxHookTimeout = 5 * time.Minute

// CheckNamed refuses a spec that names a tool that does not exist: a hook that would
// never be called, a mode without its tool, a durability without effect, an output that
// could not be satisfied.
func CheckNamed(s *harnessv1.RunSpec, names []string) error {
	check := func(field, name string) error {
		if namesTool(name, names, s.GetAgent().GetMcp()) {
			return nil
		}
		return unknownTool(field, name, names)
	}
	for i, h := range s.GetAgent().GetHooks() {
		for j, name := range h.GetTools() {
			if err := check(fmt.Sprintf("spec.agent.hooks[%d].tools[%d]", i, j), name); err != nil {
				return err
			}
		}
	}
	for i, m := range s.GetAgent().GetModes() {
		for j, name := range m.GetTools() {
			if err := check(fmt.Sprintf("spec.agent.modes[%d].tools[%d]", i, j), name); err != nil {
				return err
			}
		}
	}
	for i, t := range s.GetConfig().GetContext().GetDurability() {
		if err := check(fmt.Sprintf("spec.config.context.durability[%d].tool", i), t.GetTool()); err != nil {
			return err
		}
	}
	for i, o := range s.GetContract().GetRequiredOutputs() {
		if name := o.GetPredicate().GetTool(); name != "" {
			if err := check(fmt.Sprintf("spec.contract.required_outputs[%d].predicate.tool", i), name); err != nil {
				return err
			}
		}
	}
	return nil
}

// NamesTools reports whether a rule, a hook, a mode, a sub-agent or another part of a spec names tools.
func NamesTools(s *harnessv1.RunSpec) bool {
	return len(s.GetAgent().GetTools())+len(s.GetAgent().GetAgents())+len(s.GetClientTools())+len(s.GetConfig().GetContext().GetDurability()) > 0 ||
		slices.ContainsFunc(s.GetAgent().GetHooks(), func(h *harnessv1.Hook) bool { return len(h.GetTools()) > 0 }) ||
		slices.ContainsFunc(s.GetAgent().GetModes(), func(m *harnessv1.ModeSpec) bool { return len(m.GetTools()) > 0 }) ||
		slices.ContainsFunc(s.GetContract().GetRequiredOutputs(), func(o *harnessv1.RequiredOutput) bool { return o.GetPredicate().GetTool() != "" })
}
