package tool

import (
	"fmt"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Decide says whether a call of the tool runs, and why in one line. The last
// rule that names the tool or "*" decides; without one a tool that executes
// commands is asked for and any other runs. A granted tool and yolo turn a
// question into a yes; a denial stands whatever was granted.
func Decide(rules []*harnessv1.ToolRule, spec *harnessv1.ToolSpec, granted []string, yolo bool) (decision harnessv1.ToolDecision, why string) {
	decision, why = byRule(rules, spec)
	if decision != harnessv1.ToolDecision_TOOL_DECISION_ASK {
		return decision, why
	}
	switch {
	case slices.Contains(granted, spec.GetName()):
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "granted for this run"
	case yolo:
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "asking is switched off for this run"
	}
	return decision, why
}

func byRule(rules []*harnessv1.ToolRule, spec *harnessv1.ToolSpec) (harnessv1.ToolDecision, string) {
	for _, rule := range slices.Backward(rules) {
		if rule.GetName() != spec.GetName() && rule.GetName() != "*" {
			continue
		}
		if rule.GetPolicy() == harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED {
			break // back to the tool's default
		}
		return rule.GetPolicy(), fmt.Sprintf("the rule for %q decides", rule.GetName())
	}
	if spec.GetAnnotations().GetExecutes() {
		return harnessv1.ToolDecision_TOOL_DECISION_ASK, "it runs commands"
	}
	return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "no rule speaks against it"
}
