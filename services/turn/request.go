package turn

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/services/turn/offer"

	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// Inline are the texts of a call that the run may have stored as blobs.
type Inline struct {
	Arguments string
	// Question is the answered question of the call's server; nil for other calls.
	Question *harnessv1.ServerQuestion
}

// Request returns the request of a call to the tool host with a ledger. person is true if a local person
// has started the run.
func (s *State) Request(c Call, in Inline, ledger string, person bool) *harnessv1.ExecuteToolRequest {
	r := &harnessv1.ExecuteToolRequest{
		Namespace:     s.Run.Namespace,
		RunId:         s.Run.ID,
		CallId:        c.HostID(),
		Tool:          c.Tool,
		Arguments:     in.Arguments,
		Workspace:     s.Snapshot.GetWorkspace(),
		Timeout:       s.Snapshot.GetConfig().GetTools().GetTimeout(),
		LedgerId:      ledger,
		FirstSequence: s.Snapshot.GetFirstSequence(),
		Guarded:       c.Guarded,
		Shown:         c.Shown,
		Mcp:           s.serverCall(c.Tool),
		SkillFolders:  s.Definition.Skills,
		UserSkills:    person,
		Web:           s.webCall(c.Tool, person),
	}
	if r.Mcp != nil {
		r.Mcp.Question = in.Question
	}
	if c.Level != sandbox.Auto {
		r.Confinement = &harnessv1.Confinement{Level: c.Level, Config: s.Snapshot.GetConfig().GetSandbox(), Hosts: c.Hosts}
	}
	return r
}

// OfServer reports whether a call is one of a tool of a server.
func (s *State) OfServer(c Call) bool { return s.Offer.Servers.Lookup(c.Tool) != nil }

// serverCall returns what a tool host has to know of a call of a server's tool; nil for others. A
// call under a changed definition runs only once a person has approved it.
func (s *State) serverCall(name string) *harnessv1.McpCall {
	tool := s.Offer.Servers.Lookup(name)
	if tool == nil {
		return nil
	}
	call := &harnessv1.McpCall{
		Tool: tool.GetDefinition().GetTool(), Schema: tool.GetDefinition().GetSchema(), Digests: []string{tool.GetDefinition().GetDigest()},
		Sandbox: s.Snapshot.GetConfig().GetSandbox(), Local: s.Snapshot.GetMcp().GetLocal(), Asks: offer.AsksUser(s.Snapshot, s.Definition),
	}
	for _, server := range s.Definition.Mcp {
		if server.GetName() == tool.GetServer() {
			call.Server, call.Remembered = server, mcptool.Remembered(server, tool.GetDefinition())
		}
	}
	if c := tool.GetChange(); c != nil {
		call.Digests, call.Approved = []string{c.GetDigest()}, true
		call.Remembered = false // what the new definition says is not known here
	}
	return call
}

// unknownHost are the arguments of a call that reaches a host which no setting names.
const unknownHost = `{"url":"https://unknown.invalid/"}`

// webCall returns what a tool host has to know of a call of a web tool; nil for other tools.
// local is true if a local person has started the run.
func (s *State) webCall(name string, local bool) *harnessv1.WebCall {
	if !webtool.Is(name) {
		return nil
	}
	call := &harnessv1.WebCall{Web: s.Offer.Web, Local: local}
	if s.Definition.Policy.Restricts(name) {
		return call // the policy decides about each address, so the model requests that of a redirect
	}
	call.Hosts = slices.Clone(s.Offer.Web.GetAllow())
	for _, r := range s.Snapshot.GetGrants() {
		if r.GetHost() != "" && webtool.Visits(r.GetName()) {
			call.Hosts = append(call.Hosts, r.GetHost())
		}
	}
	spec := &harnessv1.ToolSpec{Name: name, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST}
	decision, _ := s.Definition.Policy.Decide(spec, unknownHost, policy.Exemptions{
		Outside: "it is not known", Granted: s.Snapshot.GetGrantedTools(), Yolo: s.Snapshot.GetConfig().GetTools().GetYolo(),
	})
	call.AnyHost = decision == harnessv1.ToolDecision_TOOL_DECISION_ALLOW
	return call
}
