package mcptool

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/dialect"
)

// maxShare is the share of the window above which the definitions of all servers together are
// found by find_tools alone.
const maxShare = 0.10

// maxTools bounds the tools of one server, maxLeftOut those that its status names as left out.
const (
	maxTools   = 2000
	maxLeftOut = 64
)

// Input has the states of the servers of a run when its tools are decided.
type Input struct {
	// Servers are the settings.
	Servers []*harnessv1.McpServer
	// Described is how the tool host describes them, in the same order.
	Described []*harnessv1.DescribedServer
	// Before is the state before, nil at the start of the run, and Tools its tools.
	Before *harnessv1.McpState
	Tools  *harnessv1.McpTools
}

// Selection are the tools of a run once its servers were described.
type Selection struct {
	// Tools are all tools of the run.
	Tools *harnessv1.McpTools
	// Incomplete: a server has not listed its tools yet.
	Incomplete bool
	// Servers are the states of the servers.
	Servers []*harnessv1.McpServerStatus
	// Changes are the differences from the tools before.
	Changes []*harnessv1.McpServerChange
	// Tokens of the definitions of all tools but those that are found by find_tools in any case.
	Tokens uint32
}

// Select decides which tools a run has once its servers were described.
func Select(input Input) *Selection {
	o := &selector{input: input, out: &Selection{Tools: &harnessv1.McpTools{}}, names: map[string]bool{}}
	for i, server := range input.Servers {
		described := &harnessv1.DescribedServer{Server: server.GetName(), State: harnessv1.McpServerState_MCP_SERVER_STATE_FAILED, Message: "the tool host does not know it"}
		if i < len(input.Described) {
			described = input.Described[i]
		}
		o.server(server, described)
	}
	var specs []*harnessv1.ToolSpec
	for _, t := range o.out.Tools.GetTools() {
		if !t.GetLate() {
			specs = append(specs, t.GetSpec())
		}
	}
	o.out.Tokens = runstate.ToolTokens(specs)
	return o.out
}

// selector is one call of Select.
type selector struct {
	input Input
	out   *Selection
	names map[string]bool
}

// first reports whether the run begins.
func (o *selector) first() bool { return o.input.Before == nil }

// had returns the tools of a server that the run has had, by the server's names.
func (o *selector) had(server string) map[string]*harnessv1.McpTool {
	had := map[string]*harnessv1.McpTool{}
	for _, t := range o.input.Tools.GetTools() {
		if t.GetServer() == server {
			had[t.GetDefinition().GetTool()] = t
		}
	}
	return had
}

func (o *selector) server(server *harnessv1.McpServer, described *harnessv1.DescribedServer) {
	status := &harnessv1.McpServerStatus{Server: server.GetName(), State: described.GetState(), Message: dialect.Text(described.GetMessage(), 512)}
	had := o.had(server.GetName())
	var tools []*harnessv1.McpTool
	change := &harnessv1.McpServerChange{Server: server.GetName()}
	if described.GetListed() {
		status.LeftOut = append(status.LeftOut, described.GetLeftOut()...)
		tools = o.listed(server, described, had, status, change)
	} else {
		o.out.Incomplete = true
		for _, t := range had {
			tools = append(tools, t)
		}
	}
	slices.SortFunc(tools, func(a, b *harnessv1.McpTool) int {
		return cmp.Compare(a.GetDefinition().GetTool(), b.GetDefinition().GetTool())
	})
	for _, t := range tools {
		o.names[t.GetSpec().GetName()] = true
		if !t.GetGone() {
			status.Tools++
		}
	}
	status.LeftOut = status.LeftOut[:min(len(status.LeftOut), maxLeftOut)]
	o.out.Tools.Tools = append(o.out.Tools.Tools, tools...)
	o.out.Servers = append(o.out.Servers, status)
	if !o.first() && len(change.GetAdded())+len(change.GetChanged())+len(change.GetRemoved()) > 0 ||
		o.first() && len(change.GetChanged()) > 0 {
		o.out.Changes = append(o.out.Changes, change)
	}
}

// listed returns the tools of a server that has listed them, those that are gone included.
func (o *selector) listed(server *harnessv1.McpServer, described *harnessv1.DescribedServer, had map[string]*harnessv1.McpTool,
	status *harnessv1.McpServerStatus, change *harnessv1.McpServerChange) []*harnessv1.McpTool {
	leaveOut := func(name, reason string) {
		status.LeftOut = append(status.LeftOut, &harnessv1.McpLeftOut{Tool: dialect.Text(name, 128), Reason: dialect.Text(reason, 256)})
	}
	approved := map[string]*harnessv1.McpDefinition{}
	for _, d := range described.GetApproved() {
		approved[d.GetTool()] = d
	}
	var tools []*harnessv1.McpTool
	present := map[string]bool{}
	for _, d := range described.GetTools() {
		name := d.GetTool()
		switch {
		case present[name]:
			leaveOut(name, "the server lists it twice")
			continue
		case !selected(server, name):
			continue
		case len(tools) >= maxTools:
			leaveOut(name, "the server lists too many tools")
			continue
		}
		if reason := pinned(server, d); reason != "" {
			leaveOut(name, reason)
			continue
		}
		present[name] = true
		before := had[name]
		if before != nil {
			t := kept(before, d, approved[name], slices.Contains(described.GetApprovedDigests(), d.GetDigest()))
			if t.GetChange().GetDigest() != "" && t.GetChange().GetDigest() != before.GetChange().GetDigest() {
				change.Changed = append(change.Changed, t.GetSpec().GetName())
			}
			tools = append(tools, t)
			continue
		}
		t, reason := o.fresh(server, d, approved[name])
		if reason != "" {
			leaveOut(name, reason)
			continue
		}
		change.Added = append(change.Added, t.GetSpec().GetName())
		if t.GetChange() != nil {
			change.Changed = append(change.Changed, t.GetSpec().GetName())
		}
		tools = append(tools, t)
	}
	for name, t := range had {
		if present[name] {
			continue
		}
		if !t.GetGone() {
			t = proto.CloneOf(t)
			t.Gone = true
			change.Removed = append(change.Removed, t.GetSpec().GetName())
		}
		tools = append(tools, t)
	}
	slices.Sort(change.GetRemoved())
	return tools
}

// fresh returns a tool that the run did not have; reason is why it gets none.
func (o *selector) fresh(server *harnessv1.McpServer, d, approved *harnessv1.McpDefinition) (t *harnessv1.McpTool, reason string) {
	if !o.first() && !o.input.Before.GetFinder() {
		return nil, "it came after the run began"
	}
	spec, err := Spec(server, d)
	if err != nil {
		return nil, err.Error()
	}
	if o.names[spec.GetName()] {
		return nil, "another tool has the name " + spec.GetName()
	}
	o.names[spec.GetName()] = true
	t = &harnessv1.McpTool{Server: server.GetName(), Definition: d, Spec: spec, Late: !o.first() || Searches(server)}
	if approved != nil && approved.GetDigest() != d.GetDigest() {
		t.Change, t.Unapproved = &harnessv1.McpChange{Digest: d.GetDigest(), Difference: difference(approved, d)}, true
	}
	return t, ""
}

// kept returns a tool that the run had, under the definition that the server has now. The
// model continues to see what the run began with. proven reports that a person has approved the
// present definition: that the tool host knows no other one proves nothing, as it may be another
// host, or have lost what it knew.
func kept(before *harnessv1.McpTool, d, approved *harnessv1.McpDefinition, proven bool) *harnessv1.McpTool {
	t := proto.CloneOf(before)
	t.Gone, t.Change = false, nil
	same := before.GetDefinition().GetDigest() == d.GetDigest()
	switch {
	case same && (approved == nil || approved.GetDigest() == d.GetDigest()):
	case same:
		t.Change = &harnessv1.McpChange{Digest: d.GetDigest(), Difference: difference(approved, d)}
	case approved == nil && proven:
		t.Definition = d
	default:
		t.Change = &harnessv1.McpChange{Digest: d.GetDigest(), Difference: difference(before.GetDefinition(), d)}
	}
	return t
}

// selected reports whether the settings of a server take a tool.
func selected(server *harnessv1.McpServer, name string) bool {
	return len(server.GetTools()) == 0 || slices.ContainsFunc(server.GetTools(), func(p string) bool { return tool.Matches(p, name) })
}

// pinned returns why the pins of a server do not allow a definition; empty if they do.
func pinned(server *harnessv1.McpServer, d *harnessv1.McpDefinition) string {
	if len(server.GetPins()) == 0 {
		return ""
	}
	switch digest, known := server.GetPins()[d.GetTool()]; {
	case !known:
		return "it is not pinned: run harness mcp lock to accept it"
	case digest != d.GetDigest():
		return "its definition is not the pinned one: run harness mcp lock to accept it"
	}
	return ""
}

// Searched returns the names of the servers whose tools a run searches; none if it searches none.
func Searched(s *harnessv1.McpState) []string {
	var names []string
	for _, server := range s.GetServers() {
		if s.GetFinder() {
			names = append(names, server.GetServer())
		}
	}
	return names
}

// Searches reports whether the tools of a server are found by find_tools alone, however few.
func Searches(server *harnessv1.McpServer) bool {
	return server.GetLoad() == harnessv1.McpLoad_MCP_LOAD_SEARCH
}

// SetFinder decides, at the start of a run, whether the tools of its servers are found by find_tools alone:
// all of them if their definitions need more than maxShare of the window, in tokens. Those of
// servers that come later, or that have load SEARCH, are in any case; later reports that there are
// such servers, so the run can search.
func SetFinder(s *harnessv1.McpState, tokens uint32, later bool, window uint32) {
	s.Hidden = float64(tokens) > maxShare*float64(window)
	s.Finder = s.GetHidden() || later
}

// Rules returns the rules that the settings of servers mean, which precede those of an agent.
func Rules(servers []*harnessv1.McpServer) []*harnessv1.ToolRule {
	var rules []*harnessv1.ToolRule
	for _, s := range servers {
		if s.GetPolicy() != harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED {
			rules = append(rules, &harnessv1.ToolRule{Name: Prefix(s) + "*", Policy: s.GetPolicy(), Reason: "the policy of the server " + s.GetName() + " decides"})
		}
	}
	return rules
}
