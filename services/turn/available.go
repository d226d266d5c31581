package turn

import (
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// Available are the tools of a run in a mode of work.
type Available struct {
	// Shown are those that the model is shown.
	Shown []*harnessv1.ToolSpec
	// Hidden are those that it can only find.
	Hidden []*harnessv1.ToolSpec
	// Blocked are the names of those that only other modes allow.
	Blocked map[string]bool
}

// AvailableTools returns the tools that the model can call in the mode of work of s.
func AvailableTools(s *harnessv1.Snapshot, host []*harnessv1.ToolSpec, clients *harnessv1.ClientTools, servers *mcptool.Index,
	definition *agent.Definition) Available {
	a := Available{Blocked: map[string]bool{}}
	shown, hidden := servers.Shown(s.GetMcp(), s.GetAutonomous())
	own := allTools(s, host, clients, definition)
	taken := map[string]bool{}
	for _, t := range own {
		taken[t.GetName()] = true
	}
	add := func(list *[]*harnessv1.ToolSpec, t *harnessv1.ToolSpec) {
		switch {
		case !definition.Has(t):
		case mode.Allows(runstate.Mode(s), definition.Modes, t):
			*list = append(*list, t)
		default:
			a.Blocked[t.GetName()] = true
		}
	}
	for _, t := range own {
		add(&a.Shown, t)
	}
	for _, t := range shown {
		if !taken[t.GetName()] {
			add(&a.Shown, t)
		}
	}
	for _, t := range hidden {
		if !taken[t.GetName()] {
			add(&a.Hidden, t)
		}
	}
	return a
}

// allTools returns the tools of a run: the tool host's, the harness's, its sub-agents and
// those that clients run, in this order, so that what changes comes last. A tool of the tool host with the name
// of a sub-agent is left out, and so is a client's tool with the name of any other.
func allTools(s *harnessv1.Snapshot, host []*harnessv1.ToolSpec, clients *harnessv1.ClientTools,
	definition *agent.Definition) []*harnessv1.ToolSpec {
	all := append([]*harnessv1.ToolSpec(nil), tree.HostTools(host, definition.Agents, s.GetSkills(), definition.Web)...)
	all = append(all, harnesstool.Specs(harnesstool.Setting{
		WorkItems: s.GetConfig().GetWorkItems().GetEnabled(), Questions: AsksUser(s, definition),
		Compaction: s.GetConfig().GetContext().GetCompaction(), OutputSchema: definition.OutputSchema, Wait: Waits(s, definition), WaitURL: webtool.Reaches(definition.Web),
		ArtifactKinds: definition.ArtifactKinds(s), Servers: mcptool.Searched(s.GetMcp()),
	})...)
	taken := map[string]bool{}
	for _, t := range all {
		taken[t.GetName()] = true
	}
	for _, t := range append(tree.Tools(definition.Agents), clients.GetTools()...) {
		if name := t.GetName(); !taken[name] && !harnesstool.IsReserved(name) {
			taken[name] = true
			all = append(all, t)
		}
	}
	return all
}

// AsksUser reports whether the agent of a run may ask questions: the run is not
// autonomous, and the policy of the agent does not deny it.
func AsksUser(s *harnessv1.Snapshot, definition *agent.Definition) bool {
	decision, _ := definition.Policy.Decide(&harnessv1.ToolSpec{Name: harnesstool.AskUser}, "{}", policy.Exemptions{})
	return !s.GetAutonomous() && decision != harnessv1.ToolDecision_TOOL_DECISION_DENY
}

// ParseClientTools reads the tools that a snapshot refers to.
func ParseClientTools(text string) (*harnessv1.ClientTools, error) {
	tools := &harnessv1.ClientTools{}
	return tools, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal([]byte(text), tools)
}
