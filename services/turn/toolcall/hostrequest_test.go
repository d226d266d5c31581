package toolcall

import (
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/turn/offer"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// TestRedirectsStayWhereTheCallMayGo: to hosts that are allowed or approved, to all only if every
// host is, and to no other one if the policy tells addresses apart.
func TestRedirectsStayWhereTheCallMayGo(t *testing.T) {
	allow, ask, deny := harnessv1.ToolDecision_TOOL_DECISION_ALLOW, harnessv1.ToolDecision_TOOL_DECISION_ASK, harnessv1.ToolDecision_TOOL_DECISION_DENY
	rule := func(name string, p harnessv1.ToolDecision, host string) []*harnessv1.ToolRule {
		return []*harnessv1.ToolRule{{Name: name, Policy: p, Host: host}}
	}
	for name, c := range map[string]struct {
		rules   []*harnessv1.ToolRule
		yolo    bool
		granted []string
		any     bool
		hosts   []string
	}{
		"no rule":                     {nil, false, nil, false, []string{"a.example", "b.example"}},
		"yolo":                        {nil, true, nil, true, []string{"a.example", "b.example"}},
		"the tool is allowed":         {rule("web_*", allow, ""), false, nil, true, []string{"a.example", "b.example"}},
		"the tool is granted":         {nil, false, []string{"web_fetch"}, true, []string{"a.example", "b.example"}},
		"a host is allowed":           {rule("web_fetch", allow, "c.example"), false, nil, false, []string{"a.example", "b.example"}},
		"all hosts ask":               {rule("web_fetch", ask, ""), false, nil, false, []string{"a.example", "b.example"}},
		"a host is denied":            {rule("*", deny, "c.example"), true, nil, false, nil},
		"a host of another is denied": {rule("http_request", deny, "c.example"), true, nil, true, []string{"a.example", "b.example"}},
	} {
		p, err := policy.Compile(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		s := Run{
			Definition: &agent.Definition{Policy: p}, Offer: &offer.Offer{Web: &harnessv1.Web{Fetch: true, Allow: []string{"a.example"}}},
			Snapshot: &harnessv1.Snapshot{
				GrantedTools: c.granted, Grants: []*harnessv1.ToolRule{{Name: webtool.Request, Host: "b.example"}, {Name: "run_command", Prefix: "go"}},
				Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(c.yolo)}},
			},
		}
		if got := s.webCall(webtool.Fetch, true); got.GetAnyHost() != c.any || !slices.Equal(got.GetHosts(), c.hosts) || !got.GetLocal() {
			t.Errorf("%s: %v", name, got)
		}
		if s.webCall("read_file", true) != nil {
			t.Error("another tool has the settings of web tools")
		}
	}
}

// TestOnlyWhatAPersonApprovedIsApproved: a call that runs because of a rule, or after the answer to a question, is not.
func TestOnlyWhatAPersonApprovedIsApproved(t *testing.T) {
	r := Run{Snapshot: &harnessv1.Snapshot{}, Definition: &agent.Definition{}, Offer: &offer.Offer{}}
	approved := func(c Call) bool { return r.HostRequest(c, Inline{}, "", true).GetApproved() }
	for kind, want := range map[string]bool{runstate.KindApproval: true, runstate.KindReview: true, runstate.KindQuestion: false, "": false} {
		if approved(Approved(&harnessv1.PendingCall{CallId: "c", Tool: "write_file", Kind: kind, Guarded: true})) != want {
			t.Errorf("kind %q: not %t", kind, want)
		}
	}
	call, _ := Request(&harnessv1.PreparedCall{CallId: "c", Tool: "write_file", Guarded: true, Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_RUN}, nil, 1).(Call)
	if !call.Guarded || approved(call) {
		t.Errorf("a call that no person has seen is approved: %+v", call)
	}
}
