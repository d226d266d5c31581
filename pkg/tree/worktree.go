package tree

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// MergeTool is the name of the tool that brings the work of a sub-agent with a worktree to the
// workspace of its caller.
const MergeTool = "merge_agent_work"

// SkillTool is the name of the tool that reads skills.
const SkillTool = "skill"

// HostTools returns the tools of a tool host that an agent with these sub-agents has: only
// one with sub-agents has MergeTool, only one with skills has SkillTool, and only one whose settings
// name them has web tools and calculate. A tool that has the name of a
// sub-agent, because the tool host has changed since the run started, is left out.
func HostTools(tools []*harnessv1.ToolSpec, agents []*harnessv1.SubAgent, skills bool, web *harnessv1.Web) []*harnessv1.ToolSpec {
	return slices.DeleteFunc(slices.Clone(tools), func(t *harnessv1.ToolSpec) bool {
		return t.GetName() == MergeTool && len(agents) == 0 || t.GetName() == SkillTool && !skills ||
			webtool.Is(t.GetName()) && !webtool.Has(web, t.GetName()) || Lookup(agents, t.GetName()) != nil
	})
}
