package policy

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestTheStricterDecisionCounts, for each pair of decisions and each tool, in either order and with a third policy between them.
func TestTheStricterDecisionCounts(t *testing.T) {
	const (
		none  = harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED
		allow = harnessv1.ToolDecision_TOOL_DECISION_ALLOW
		ask   = harnessv1.ToolDecision_TOOL_DECISION_ASK
		deny  = harnessv1.ToolDecision_TOOL_DECISION_DENY
	)
	specs := map[string]*harnessv1.ToolSpec{
		"read": {Name: "read", Annotations: &harnessv1.ToolAnnotations{Reads: true}},
		"run":  {Name: "run", Annotations: &harnessv1.ToolAnnotations{Executes: true}},
	}
	rules := func(d harnessv1.ToolDecision) []*harnessv1.ToolRule {
		if d == none {
			return []*harnessv1.ToolRule{{Name: "another", Policy: deny}}
		}
		return []*harnessv1.ToolRule{{Name: "*", Policy: deny}, {Name: "r*", Policy: d}} // the last one that fits decides
	}
	layer := func(d harnessv1.ToolDecision) *harnessv1.ToolPolicy { return &harnessv1.ToolPolicy{Rules: rules(d)} }
	for _, c := range []struct{ parent, own, reads, runs harnessv1.ToolDecision }{
		{none, none, allow, ask}, {none, allow, allow, ask}, {none, ask, ask, ask}, {none, deny, deny, deny},
		{allow, none, allow, allow}, {allow, allow, allow, allow}, {allow, ask, ask, ask}, {allow, deny, deny, deny},
		{ask, none, ask, ask}, {ask, allow, ask, ask}, {ask, ask, ask, ask}, {ask, deny, deny, deny},
		{deny, none, deny, deny}, {deny, allow, deny, deny}, {deny, ask, deny, deny}, {deny, deny, deny, deny},
	} {
		for name, layers := range map[string][]*harnessv1.ToolPolicy{
			"alone": {layer(c.own)}, "before another": {layer(c.own), layer(allow)}, "after another": {layer(none), layer(c.own)},
		} {
			p, err := Compile(rules(c.parent), layers...)
			if err != nil {
				t.Fatal(err)
			}
			for tool, want := range map[string]harnessv1.ToolDecision{"read": c.reads, "run": c.runs} {
				if got, why := p.Decide(specs[tool], "{}", Exemptions{}); got != want || why == "" {
					t.Errorf("%v, then %v %s: %s is %v (%s), want %v", c.parent, c.own, name, tool, got, why, want)
				}
				exempt := want
				if want == ask {
					exempt = allow
				}
				for what, e := range map[string]Exemptions{"yolo": {Yolo: true}, "a grant": {Granted: []string{tool}}} {
					if got, _ := p.Decide(specs[tool], "{}", e); got != exempt {
						t.Errorf("%v, then %v %s with %s: %s is %v, want %v", c.parent, c.own, name, what, tool, got, exempt)
					}
				}
			}
		}
	}
}

// TestStricterPoliciesRestrict some calls of a tool, so that each of its redirects is decided, and errors name the rule.
func TestStricterPoliciesRestrict(t *testing.T) {
	hosts := &harnessv1.ToolPolicy{Rules: []*harnessv1.ToolRule{{Name: "web_fetch", Host: "example.com", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}}}
	p, err := Compile(nil, &harnessv1.ToolPolicy{}, hosts)
	if err != nil || !p.Restricts("web_fetch") || p.Restricts("read_file") {
		t.Errorf("%v: it restricts the wrong tools", err)
	}
	bad := []*harnessv1.ToolRule{{Name: "a", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}, {Name: "b", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK, Pattern: "("}}
	if _, err := Compile(nil, hosts, &harnessv1.ToolPolicy{Rules: bad}); fault.FieldOf(err) == nil || fault.FieldOf(err).Field != "policies[1].rules[1].pattern" {
		t.Errorf("%v", err)
	}
	if err := Check("policy", bad); fault.FieldOf(err) == nil || fault.FieldOf(err).Field != "policy[1].pattern" {
		t.Errorf("%v", err)
	}
	if err := Check("policy", []*harnessv1.ToolRule{{Name: "a"}}); err == nil || !strings.Contains(err.Error(), "policy[0].policy: missing") {
		t.Errorf("%v", err)
	}
}
