package agentfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// looks are the checks that know more of a place than the gateway tells. Each is
// about one section.
var looks = []func(*harnessv1.RunSpec) error{
	checkRules, checkClientTools, checkTemplates, checkJit, checkHooks, checkModes, checkMode, checkContract,
}

var toolName = regexp.MustCompile(`^(\*|[A-Za-z0-9_-]{1,64})$`)

func checkRules(spec *harnessv1.RunSpec) error {
	rules := spec.GetAgent().GetTools()
	for i, rule := range rules {
		field := at("spec.agent.tools", i)
		switch {
		case !toolName.MatchString(rule.GetName()):
			return refusef(field+".name", "%q: want the name of a tool, or *", clip(rule.GetName()))
		case rule.GetPolicy() == harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED:
			return refusef(field+".policy", "missing: want allow, ask or deny")
		}
	}
	_, err := policy.Compile(rules)
	return err
}

func checkClientTools(spec *harnessv1.RunSpec) error {
	for i, t := range spec.GetClientTools() {
		field := at("spec.client_tools", i)
		switch {
		case t.GetName() == "":
			return refusef(field+".name", "missing")
		case t.GetName() == "*" || !toolName.MatchString(t.GetName()):
			return refusef(field+".name", "%q: want letters, digits, - and _, at most 64", clip(t.GetName()))
		case strings.TrimSpace(t.GetDescription()) == "":
			return refusef(field+".description", "missing: the model chooses %s by it", t.GetName())
		}
		if _, err := tool.NewSet([]*harnessv1.ToolSpec{t}); err != nil {
			text := strings.TrimPrefix(err.Error(), fmt.Sprintf("tool %q: parameters_schema: ", t.GetName()))
			return refusef(field+".parameters_schema", "%s", text)
		}
	}
	return nil
}

func checkTemplates(spec *harnessv1.RunSpec) error {
	templates := spec.GetAgent().GetWorkItemTemplates()
	if len(templates) > 0 && !spec.GetConfig().GetWorkItems().GetEnabled() {
		return refusef("spec.agent.work_item_templates", "there are no work items without enabled: true beside them")
	}
	return workitem.CheckTemplates(templates)
}

func checkJit(spec *harnessv1.RunSpec) error {
	_, err := jit.Compile(spec.GetAgent().GetJit())
	return err
}

func checkHooks(spec *harnessv1.RunSpec) error {
	_, err := hook.Compile(spec.GetAgent().GetHooks())
	return err
}

func checkModes(spec *harnessv1.RunSpec) error { return mode.Check(spec.GetAgent().GetModes()) }

func checkMode(spec *harnessv1.RunSpec) error {
	agent := spec.GetAgent()
	if agent.GetMode() == "" || mode.Known(agent.GetMode(), agent.GetModes()) {
		return nil
	}
	return refusef("spec.agent.mode", "there is no mode %q: the modes are %s", clip(agent.GetMode()), strings.Join(mode.Names(agent.GetModes()), ", "))
}

func checkContract(spec *harnessv1.RunSpec) error {
	if spec.GetContract() == nil {
		return nil
	}
	return contract.Validate(spec.GetContract())
}

// invalid brings the refusals of those packages into one form.
func invalid(err error) *refusal {
	var (
		ofTool     *policy.Invalid
		ofItems    *workitem.Invalid
		ofJit      *jit.Invalid
		ofHook     *hook.Invalid
		ofMode     *mode.Invalid
		ofContract *contract.Invalid
	)
	switch {
	case errors.As(err, &ofTool):
		return &refusal{"spec.agent." + ofTool.Field, ofTool.Message, ofTool.Line, ofTool.Column}
	case errors.As(err, &ofItems):
		return &refusal{"spec.agent." + ofItems.Field, ofItems.Message, 0, 0}
	case errors.As(err, &ofJit):
		return &refusal{"spec.agent." + ofJit.Field, ofJit.Message, ofJit.Line, ofJit.Column}
	case errors.As(err, &ofHook):
		return &refusal{"spec.agent." + ofHook.Field, ofHook.Message, ofHook.Line, ofHook.Column}
	case errors.As(err, &ofMode):
		return &refusal{"spec.agent." + ofMode.Field, ofMode.Message, 0, 0}
	case errors.As(err, &ofContract):
		return &refusal{under("spec.contract", ofContract.Field), ofContract.Message, ofContract.Line, ofContract.Column}
	}
	return nil
}

// under is the path of a field below another; an empty one is that itself.
func under(parent, field string) string {
	if field == "" {
		return parent
	}
	return parent + "." + field
}
