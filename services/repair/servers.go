package repair

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// seeServers takes in how the servers of the run are, and which tools they have, once in a
// decision.
func (d *decision) seeServers() error {
	if len(d.made.Mcp) == 0 || d.sawServers {
		return nil
	}
	seen := agent.Observation(d.in, NeedMcp).GetMcp()
	if seen == nil {
		return &agent.NeedsError{Keys: []string{NeedMcp}}
	}
	d.sawServers = true
	before := d.s.GetMcp()
	d.s.Mcp = proto.CloneOf(seen.GetState())
	if before == nil {
		mcptool.SetFinder(d.s.Mcp, seen.GetTokens(), seen.GetIncomplete() || slices.ContainsFunc(d.made.Mcp, mcptool.Searches), d.s.GetConfig().GetContext().GetMaxInputTokens())
		d.serverTools = seen.GetTokens()
	} else {
		d.s.Mcp.Hidden, d.s.Mcp.Finder = before.GetHidden(), before.GetFinder()
	}
	d.leaveOut(before)
	for _, server := range d.s.GetMcp().GetServers() {
		same := func(b *harnessv1.McpServerStatus) bool { return proto.Equal(b, server) }
		if !slices.ContainsFunc(before.GetServers(), same) {
			d.Emit(event.ServerState(&harnessv1.ServerState{
				Server: server.GetServer(), State: stateName(server.GetState()), Message: server.GetMessage(), Tools: server.GetTools(), LeftOut: server.GetLeftOut(),
			}))
		}
	}
	for _, c := range seen.GetChanges() {
		d.Emit(event.ToolsChanged(&harnessv1.ToolsChanged{Server: c.GetServer(), Added: c.GetAdded(), Changed: c.GetChanged(), Removed: c.GetRemoved()}))
	}
	return nil
}

// leaveOut notes the tools that a model refuses, which its requests are sent without.
func (d *decision) leaveOut(before *harnessv1.McpState) {
	for _, a := range d.s.GetModelAdjustments() {
		if a.GetAdjustment() != harnessv1.Adjustment_ADJUSTMENT_NO_TOOL {
			continue
		}
		i := -1
		for n, server := range d.made.Mcp { // of two names that fit, the longer is that of its server
			if strings.HasPrefix(a.GetTool(), mcptool.Prefix(server)) && (i < 0 || len(server.GetName()) > len(d.made.Mcp[i].GetName())) {
				i = n
			}
		}
		if i < 0 || i >= len(d.s.GetMcp().GetServers()) {
			continue
		}
		server := d.s.GetMcp().GetServers()[i]
		left := &harnessv1.McpLeftOut{Tool: a.GetTool(), Reason: "the model " + a.GetModel() + " refuses its definition"}
		server.LeftOut = append(server.LeftOut, left)
		known := func(b *harnessv1.McpServerStatus) bool {
			return slices.ContainsFunc(b.GetLeftOut(), func(l *harnessv1.McpLeftOut) bool { return proto.Equal(l, left) })
		}
		if !slices.ContainsFunc(before.GetServers(), known) {
			d.Emit(event.ToolsChanged(&harnessv1.ToolsChanged{Server: server.GetServer(), Removed: []string{a.GetTool()}}))
		}
	}
}

// stateName returns the state of a server as events name it, such as needs_sign_in.
func stateName(s harnessv1.McpServerState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "MCP_SERVER_STATE_"))
}

// serverTokens returns the tokens of the tools of servers that the first request has.
func (d *decision) serverTokens() uint32 {
	if d.s.GetMcp().GetHidden() {
		return 0
	}
	return d.serverTools
}
