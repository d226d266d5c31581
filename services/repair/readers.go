package repair

import (
	"fmt"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// resolveReaders stores which of the run's sub-agents cannot change anything, by the tools that it has at its start: those of the
// tool host, those of clients, and, where a sub-agent lists one, those of servers.
func (d *decision) resolveReaders(spec *harnessv1.RunSpec, host []*harnessv1.ToolSpec) error {
	if len(d.made.Agents) == 0 {
		return nil
	}
	tools := slices.Concat(host, spec.GetClientTools())
	if listsServers(d.made.Agents) && d.s.GetMcp().GetTools() != nil {
		text, err := d.text(d.s.GetMcp().GetTools())
		if err != nil {
			return err
		}
		served, err := mcptool.Decode(text)
		if err != nil {
			return fmt.Errorf("parse the tools of servers: %w", err)
		}
		for _, t := range served.GetTools() {
			tools = append(tools, t.GetSpec())
		}
	}
	tools = slices.DeleteFunc(tools, func(t *harnessv1.ToolSpec) bool { return !d.made.Has(t) })
	made := *d.made
	made.Agents = tree.Readers(d.made.Agents, d.made.ReadOnly, tools, len(d.made.Mcp) == 0)
	d.made = &made
	d.s.Definition.Agents = made.Agents
	return nil
}

// serverTools begins the names of the tools of servers.
const serverTools = "mcp__"

// listsServers reports whether a sub-agent that may write lists a tool of a server.
func listsServers(agents []*harnessv1.SubAgent) bool {
	return slices.ContainsFunc(agents, func(a *harnessv1.SubAgent) bool {
		return !a.GetReadOnly() && slices.ContainsFunc(a.GetTools(), func(p string) bool { return strings.HasPrefix(p, serverTools) || strings.HasPrefix(p, "*") })
	})
}
