package agentfile

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// looks are the checks with more precise places than the gateway's. Each is about one
// section.
var looks = []func(*harnessv1.RunSpec) error{
	checkRules, checkClientTools, checkTemplates, checkJit, checkHooks, checkModes, checkMode, checkContract,
}

func checkRules(spec *harnessv1.RunSpec) error {
	rules := spec.GetAgent().GetTools()
	for i, rule := range rules {
		field := at("spec.agent.tools", i)
		switch {
		case !tool.ValidPattern(rule.GetName()):
			return fault.Invalid(field+".name", "%q: expected the name of a tool, with * for any characters", clip(rule.GetName()))
		case rule.GetPolicy() == harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED:
			return fault.Invalid(field+".policy", "missing: expected allow, ask or deny")
		}
	}
	_, err := policy.Compile(rules)
	return fault.In("spec.agent", err)
}

func checkClientTools(spec *harnessv1.RunSpec) error {
	for i, t := range spec.GetClientTools() {
		field := at("spec.client_tools", i)
		switch {
		case t.GetName() == "":
			return fault.Invalid(field+".name", "missing")
		case !tool.ValidName(t.GetName()):
			return fault.Invalid(field+".name", "%q: expected letters, digits, - and _, at most 64", clip(t.GetName()))
		case strings.TrimSpace(t.GetDescription()) == "":
			return fault.Invalid(field+".description", "missing: the model uses it to choose %s", t.GetName())
		}
		if err := tool.CheckSchema(t.GetParametersSchema()); err != nil {
			return fault.Invalid(field+".parameters_schema", "%s", err)
		}
	}
	return nil
}

func checkTemplates(spec *harnessv1.RunSpec) error {
	templates := spec.GetAgent().GetWorkItemTemplates()
	if len(templates) > 0 && !spec.GetConfig().GetWorkItems().GetEnabled() {
		return fault.Invalid("spec.agent.work_item_templates", "work items are not enabled: set enabled: true in the same section")
	}
	return fault.In("spec.agent", workitem.CheckTemplates(templates))
}

func checkJit(spec *harnessv1.RunSpec) error {
	_, err := jit.Compile(spec.GetAgent().GetJit())
	return fault.In("spec.agent", err)
}

func checkHooks(spec *harnessv1.RunSpec) error {
	_, err := hook.Compile(spec.GetAgent().GetHooks())
	return fault.In("spec.agent", err)
}

func checkModes(spec *harnessv1.RunSpec) error {
	return fault.In("spec.agent", mode.Check(spec.GetAgent().GetModes()))
}

func checkMode(spec *harnessv1.RunSpec) error {
	agent := spec.GetAgent()
	if agent.GetMode() == "" || mode.Exists(agent.GetMode(), agent.GetModes()) {
		return nil
	}
	return fault.Invalid("spec.agent.mode", "unknown mode %q: must be one of %s", clip(agent.GetMode()), strings.Join(mode.Names(agent.GetModes()), ", "))
}

func checkContract(spec *harnessv1.RunSpec) error {
	if spec.GetContract() == nil {
		return nil
	}
	return fault.In("spec.contract", contract.Validate(spec.GetContract()))
}
