package policy

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestDecide(t *testing.T) {
	const (
		unset = harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED
		allow = harnessv1.ToolDecision_TOOL_DECISION_ALLOW
		ask   = harnessv1.ToolDecision_TOOL_DECISION_ASK
		deny  = harnessv1.ToolDecision_TOOL_DECISION_DENY
	)
	reads := &harnessv1.ToolSpec{Name: "read", Annotations: &harnessv1.ToolAnnotations{Reads: true}}
	runs := &harnessv1.ToolSpec{Name: "run", Annotations: &harnessv1.ToolAnnotations{Executes: true}}
	rule := func(name string, policy harnessv1.ToolDecision) *harnessv1.ToolRule {
		return &harnessv1.ToolRule{Name: name, Policy: policy}
	}
	type rules = []*harnessv1.ToolRule
	for name, c := range map[string]struct {
		rules   rules
		spec    *harnessv1.ToolSpec
		granted []string
		yolo    bool
		want    harnessv1.ToolDecision
	}{
		"default of a reader":          {nil, reads, nil, false, allow},
		"default of a runner":          {nil, runs, nil, false, ask},
		"no annotations":               {nil, &harnessv1.ToolSpec{Name: "x"}, nil, false, allow},
		"rule":                         {rules{rule("run", allow)}, runs, nil, false, allow},
		"star":                         {rules{rule("*", ask)}, reads, nil, false, ask},
		"the last wins":                {rules{rule("run", deny), rule("*", allow)}, runs, nil, false, allow},
		"the last wins, other way":     {rules{rule("*", allow), rule("run", deny)}, runs, nil, false, deny},
		"a rule for another":           {rules{rule("read", deny)}, runs, nil, false, ask},
		"an unset rule is the default": {rules{rule("*", deny), rule("run", unset)}, runs, nil, false, ask},
		"granted":                      {nil, runs, []string{"run"}, false, allow},
		"another granted":              {nil, runs, []string{"read"}, false, ask},
		"yolo":                         {rules{rule("*", ask)}, runs, nil, true, allow},
		"yolo never lifts a denial":    {rules{rule("run", deny)}, runs, []string{"run"}, true, deny},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(c.rules)
			if err != nil {
				t.Fatal(err)
			}
			got, why := p.Decide(c.spec, "{}", Exemptions{Granted: c.granted, Yolo: c.yolo})
			if got != c.want || why == "" {
				t.Fatalf("got %v (%q), want %v", got, why, c.want)
			}
		})
	}
}
