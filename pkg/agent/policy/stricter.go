package policy

import (
	"fmt"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Check checks rules that only restrict. The error is a *fault.FieldError whose path begins with field.
func Check(field string, rules []*harnessv1.ToolRule) error {
	for i, r := range rules {
		if r.GetPolicy() == harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED {
			return fault.Invalid(fmt.Sprintf("%s[%d].policy", field, i), "missing: expected allow, ask or deny")
		}
	}
	_, err := compile(field, rules)
	return err
}

// strictest returns the strictest of a decision and those of the stricter policies, with its reason.
func (p *Policy) strictest(spec *harnessv1.ToolSpec, call *policyCall, decision harnessv1.ToolDecision, why string) (harnessv1.ToolDecision, string) {
	if p == nil {
		return decision, why
	}
	for _, other := range p.stricter {
		if d, w := other.byRule(spec, call); strictness(d) > strictness(decision) {
			decision, why = d, w
		}
	}
	return decision, why
}

// strictness orders decisions; that of a policy that does not decide is the least.
func strictness(d harnessv1.ToolDecision) int {
	return slices.Index([]harnessv1.ToolDecision{
		harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED, harnessv1.ToolDecision_TOOL_DECISION_ALLOW,
		harnessv1.ToolDecision_TOOL_DECISION_ASK, harnessv1.ToolDecision_TOOL_DECISION_DENY,
	}, d)
}
