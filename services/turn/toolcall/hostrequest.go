package toolcall

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// Inline are the texts of a call that the run may have stored as blobs.
type Inline struct {
	Arguments string
	// Question is the answered question of the call's server; nil for other calls.
	Question *harnessv1.ServerQuestion
}

// Run is the run whose calls a tool host runs.
type Run struct {
	runlog.Run
	Snapshot   *harnessv1.Snapshot
	Definition *agent.Definition
	Offer      *offer.Offer
}

// HostRequest returns the request of a call to the tool host with a ledger. person is true if a local person
// has started the run.
func (r Run) HostRequest(c Call, in Inline, ledger string, person bool) *harnessv1.ExecuteToolRequest {
	request := &harnessv1.ExecuteToolRequest{
		Namespace:     r.Namespace,
		RunId:         r.ID,
		CallId:        c.HostID(),
		Tool:          c.Tool,
		Arguments:     in.Arguments,
		Workspace:     r.Snapshot.GetWorkspace(),
		Timeout:       r.Snapshot.GetConfig().GetTools().GetTimeout(),
		LedgerId:      ledger,
		FirstSequence: r.Snapshot.GetFirstSequence(),
		Guarded:       c.Guarded,
		Approved:      c.Approved,
		Shown:         c.Shown,
		Mcp:           r.serverCall(c.Tool),
		SkillFolders:  r.Definition.Skills,
		Roots:         r.Snapshot.GetFolder().GetRoots(),
		UserSkills:    person,
		Web:           r.webCall(c.Tool, person),
		Instructions:  runstate.ShowsInstructions(r.Snapshot),
	}
	if request.Mcp != nil {
		request.Mcp.Question = in.Question
	}
	if c.Level != sandbox.Auto {
		request.Confinement = &harnessv1.Confinement{Level: c.Level, Config: r.Snapshot.GetConfig().GetSandbox(), Hosts: c.Hosts}
	}
	return request
}

// OfServer reports whether a call is one of a tool of a server.
func (r Run) OfServer(c Call) bool { return r.Offer.Servers.Lookup(c.Tool) != nil }

// serverCall returns what a tool host has to know of a call of a server's tool; nil for others. A
// call under a changed definition runs only once a person has approved it.
func (r Run) serverCall(name string) *harnessv1.McpCall {
	tool := r.Offer.Servers.Lookup(name)
	if tool == nil {
		return nil
	}
	call := &harnessv1.McpCall{
		Tool: tool.GetDefinition().GetTool(), Schema: tool.GetDefinition().GetSchema(), Digests: []string{tool.GetDefinition().GetDigest()},
		Sandbox: r.Snapshot.GetConfig().GetSandbox(), Local: r.Snapshot.GetMcp().GetLocal(), Asks: offer.AsksUser(r.Snapshot, r.Definition),
	}
	for _, server := range r.Definition.Mcp {
		if server.GetName() == tool.GetServer() {
			call.Server, call.Remembered = server, mcptool.Remembered(server, tool.GetDefinition())
		}
	}
	if c := tool.GetChange(); c != nil {
		call.Digests, call.Approved = []string{c.GetDigest()}, true
		call.Remembered = false // the new definition is not known here
	}
	return call
}

// unknownHost are the arguments of a call that reaches a host which no setting names.
const unknownHost = `{"url":"https://unknown.invalid/"}`

// webCall returns what a tool host has to know of a call of a web tool; nil for other tools.
// local is true if a local person has started the run.
func (r Run) webCall(name string, local bool) *harnessv1.WebCall {
	if !webtool.Is(name) {
		return nil
	}
	call := &harnessv1.WebCall{Web: r.Offer.Web, Local: local}
	if r.Definition.Policy.Restricts(name) {
		return call // the policy decides about each address, so the model requests that of a redirect
	}
	call.Hosts = slices.Clone(r.Offer.Web.GetAllow())
	for _, g := range r.Snapshot.GetGrants() {
		if g.GetHost() != "" && webtool.Visits(g.GetName()) {
			call.Hosts = append(call.Hosts, g.GetHost())
		}
	}
	spec := &harnessv1.ToolSpec{Name: name, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST}
	decision, _ := r.Definition.Policy.Decide(spec, unknownHost, policy.Exemptions{
		Outside: "it is not known", Granted: r.Snapshot.GetGrantedTools(), Yolo: r.Snapshot.GetConfig().GetTools().GetYolo(),
	})
	call.AnyHost = decision == harnessv1.ToolDecision_TOOL_DECISION_ALLOW
	return call
}
