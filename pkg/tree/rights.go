package tree

import (
	"slices"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// Changes reports whether a tool may change something outside the run. A client's tool counts as changing something unless its
// annotations state that it reads.
func Changes(t *harnessv1.ToolSpec) bool {
	a := t.GetAnnotations()
	switch t.GetOrigin() {
	case harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		return false
	case harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT:
		return a.GetWrites() || a.GetExecutes() || !a.GetReads() && !a.GetExplores()
	default:
		return a.GetWrites() || a.GetExecutes()
	}
}

// Listed reports whether a list of the only tools of an agent, such as SubAgent.tools, has a tool. An empty list has all; tools
// of the harness and sub-agents need not be in it.
func Listed(only []string, t *harnessv1.ToolSpec) bool {
	switch t.GetOrigin() {
	case harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS, harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT:
		return true
	default:
		return len(only) == 0 || matchesOne(only, t.GetName())
	}
}

func matchesOne(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return tool.Matches(p, name) })
}

// noTool is a pattern that no tool matches.
const noTool = ""

// narrow returns the only tools of a child: those that its definition lists, of those that its parent has. Of two patterns the one that
// the other matches counts; patterns that overlap otherwise have no tool in common here.
func narrow(parent, own []string) []string {
	if len(parent) == 0 {
		return own
	}
	if len(own) == 0 {
		return parent
	}
	var both []string
	for _, p := range own {
		if matchesOne(parent, p) {
			both = append(both, p)
		}
	}
	for _, p := range parent {
		if !slices.Contains(both, p) && matchesOne(own, p) {
			both = append(both, p)
		}
	}
	if len(both) == 0 {
		return []string{noTool}
	}
	return both
}

// Readers returns definitions with read_only set for each sub-agent that cannot change anything, because all tools that it has read
// only: those of tools that it lists, or all of them. readOnly is true if the calling run has only such tools itself. tools
// are those that the calling run has of the tool host, of servers and of clients; whole is false if servers may have
// others. A listed name that is in none of them counts as a tool that writes.
func Readers(agents []*harnessv1.SubAgent, readOnly bool, tools []*harnessv1.ToolSpec, whole bool) []*harnessv1.SubAgent {
	var all []*harnessv1.SubAgent
	for _, a := range agents {
		if !a.GetReadOnly() && (readOnly || readsOnly(a, tools, whole)) {
			a = proto.CloneOf(a)
			a.ReadOnly = proto.Bool(true)
		}
		all = append(all, a)
	}
	return all
}

func readsOnly(a *harnessv1.SubAgent, tools []*harnessv1.ToolSpec, whole bool) bool {
	if len(a.GetTools()) == 0 {
		return whole && len(tools) > 0 && !slices.ContainsFunc(tools, func(t *harnessv1.ToolSpec) bool {
			return t.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT && Changes(t)
		})
	}
	for _, p := range a.GetTools() {
		if harnesstool.Find(p) != nil || Lookup(a.GetAgents(), p) != nil {
			continue
		}
		known := false
		for _, t := range tools {
			if tool.Matches(p, t.GetName()) {
				if known = true; Changes(t) {
					return false
				}
			}
		}
		if !known {
			return false
		}
	}
	return true
}
