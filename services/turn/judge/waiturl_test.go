package judge

import (
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/turn/offer"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// TestWaitsForAddresses are decided as calls that read the address, and there are none without
// web tools that read one.
func TestWaitsForAddresses(t *testing.T) {
	allow, ask, deny := harnessv1.ToolDecision_TOOL_DECISION_ALLOW, harnessv1.ToolDecision_TOOL_DECISION_ASK, harnessv1.ToolDecision_TOOL_DECISION_DENY
	const waits, asks, denied, invalid = harnessv1.CallDisposition_CALL_DISPOSITION_WAIT, harnessv1.CallDisposition_CALL_DISPOSITION_ASK,
		harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, harnessv1.CallDisposition_CALL_DISPOSITION_INVALID
	fetch, request := &harnessv1.Web{Fetch: true, Allow: []string{"a.example"}}, &harnessv1.Web{Request: true, Allow: []string{"a.example"}}
	rule := func(name string, p harnessv1.ToolDecision, host string) []*harnessv1.ToolRule {
		return []*harnessv1.ToolRule{{Name: name, Policy: p, Host: host}}
	}
	for name, c := range map[string]struct {
		web     *harnessv1.Web
		url     string
		rules   []*harnessv1.ToolRule
		granted []string
		blocked bool
		want    harnessv1.CallDisposition
	}{
		"an allowed host":            {fetch, "https://a.example/x", nil, nil, false, waits},
		"with http_request alone":    {request, "https://a.example/x", nil, nil, false, waits},
		"another host":               {fetch, "https://b.example", nil, nil, false, asks},
		"a host that was approved":   {fetch, "https://c.example", nil, nil, false, waits},
		"all of web_fetch approved":  {fetch, "https://b.example", nil, []string{webtool.Fetch}, false, waits},
		"waits approved":             {fetch, "https://b.example", nil, []string{harnesstool.Wait}, false, asks},
		"a host that is denied":      {fetch, "https://a.example", rule(webtool.Fetch, deny, "a.example"), nil, false, denied},
		"a host that a rule allows":  {fetch, "https://b.example", rule(webtool.Fetch, allow, "b.example"), nil, false, waits},
		"a host that a rule asks of": {fetch, "https://a.example", rule(webtool.Fetch, ask, "a.example"), nil, false, asks},
		"waits are denied":           {fetch, "https://a.example", rule(harnesstool.Wait, deny, ""), nil, false, denied},
		"no address":                 {fetch, "ftp://a.example", nil, nil, false, invalid},
		"a password":                 {fetch, "https://u:p@a.example", nil, nil, false, invalid},
		"a mode without web tools":   {fetch, "https://a.example", nil, nil, true, denied},
		"without web tools":          {nil, "https://a.example", nil, nil, false, invalid},
		"with a calculator":          {&harnessv1.Web{Calculate: true}, "https://a.example", nil, nil, false, invalid},
	} {
		p, err := policy.Compile(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		specs := harnesstool.Specs(harnesstool.Setting{Wait: true, WaitURL: webtool.Reaches(c.web)})
		for _, name := range []string{webtool.Fetch, webtool.Request} {
			if webtool.Has(c.web, name) && !c.blocked {
				specs = append(slices.Clone(specs), &harnessv1.ToolSpec{Name: name, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, ParametersSchema: `{"type":"object"}`, Annotations: &harnessv1.ToolAnnotations{Reads: true}})
			}
		}
		set, err := tool.NewSet(specs)
		if err != nil {
			t.Fatal(err)
		}
		tools := &offer.Offer{Set: set, Web: c.web}
		if c.blocked {
			tools.Blocked = map[string]bool{webtool.Fetch: true}
		}
		j := &Calls{t: Turn{
			Snapshot: &harnessv1.Snapshot{
				GrantedTools: c.granted, Grants: []*harnessv1.ToolRule{{Name: webtool.Fetch, Policy: allow, Host: "c.example"}}, Config: &harnessv1.LoopConfig{},
			},
			Offer: tools, Definition: &agent.Definition{Policy: p},
		}}
		got := j.Prepare(&harnessv1.ToolCall{Id: "c", Name: harnesstool.Wait, Arguments: content.Inline(`{"url":"` + c.url + `"}`)})
		if got.GetDisposition() != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if c.want == asks && c.rules == nil && !strings.Contains(got.GetMessage(), "b.example") {
			t.Errorf("%s: a person reads %q", name, got.GetMessage())
		}
	}
}
