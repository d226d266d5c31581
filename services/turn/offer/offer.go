// Package offer decides what the model of a turn may call: the tools of the run in a mode of work,
// those of its servers, and what it reaches in the web. New makes the one value that holds all of it.
//
// An Offer is shared by the turns of all runs with the same setting, and never changed. New fails
// for a tool whose schema does not compile; nothing else here fails.
package offer

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// Offer has the tools of a turn: those of the run in a mode of work, those of its servers, and the addresses that
// it reaches in the web. It is shared, and never changed.
type Offer struct {
	// Set are the tools that the model is shown.
	*tool.Set
	// Hidden are the tools that it can only find, and Servers all tools of servers. Nil: there
	// are none.
	Hidden  *tool.Set
	Servers *mcptool.Index
	// Mode is the mode of work, and Blocked are the names of the tools that only other modes allow.
	Mode    string
	Blocked map[string]bool
	// Web has the addresses that the run may reach by its own decision; nil for none.
	Web *harnessv1.Web
	// Tokens estimates the tokens of the specs of Set.
	Tokens uint32
	// List is the specs of Set as records refer to them.
	List ToolList
}

// New returns the tools that the model may call in the mode of work of s. An error means that a
// tool has a schema that does not compile.
func New(s *harnessv1.Snapshot, host []*harnessv1.ToolSpec, clients *harnessv1.ClientTools, servers *mcptool.Index,
	definition *agent.Definition) (*Offer, error) {
	o := &Offer{Servers: servers, Mode: runstate.Mode(s), Blocked: map[string]bool{}, Web: definition.Web}
	var show, hide []*harnessv1.ToolSpec
	shown, hidden := servers.Shown(s.GetMcp(), s.GetAutonomous())
	own := allTools(s, host, clients, definition)
	taken := map[string]bool{}
	for _, t := range own {
		taken[t.GetName()] = true
	}
	add := func(list *[]*harnessv1.ToolSpec, t *harnessv1.ToolSpec) {
		switch {
		case !definition.Has(t):
		case mode.Allows(o.Mode, definition.Modes, t):
			*list = append(*list, t)
		default:
			o.Blocked[t.GetName()] = true
		}
	}
	for _, t := range own {
		add(&show, t)
	}
	for _, t := range shown {
		if !taken[t.GetName()] {
			add(&show, t)
		}
	}
	for _, t := range hidden {
		if !taken[t.GetName()] {
			add(&hide, t)
		}
	}
	var err error
	if o.Set, err = tool.NewSet(show); err != nil {
		return nil, fmt.Errorf("compile the tools of the run: %w", err)
	}
	if len(hide) > 0 {
		if o.Hidden, err = tool.NewSet(hide); err != nil {
			return nil, fmt.Errorf("compile the tools of servers: %w", err)
		}
	}
	if o.List, err = listOf(show); err != nil {
		return nil, err
	}
	o.Tokens = runstate.ToolTokens(show)
	return o, nil
}

// Reach returns the set with a tool that the model can call, by name or with call_tool; nil if
// there is none.
func (o *Offer) Reach(name string, byCallTool bool) (*tool.Set, *harnessv1.ToolSpec) {
	if spec := o.Lookup(name); spec != nil && (!byCallTool || o.Servers.Lookup(name) != nil) {
		return o.Set, spec
	}
	if o.Hidden != nil {
		if spec := o.Hidden.Lookup(name); spec != nil {
			return o.Hidden, spec
		}
	}
	return nil, nil
}

// ToolList is a harnessv1.ToolList in binary form.
type ToolList struct {
	Digest string
	Data   []byte
}

// listOf returns tools as the record of a response refers to them.
func listOf(specs []*harnessv1.ToolSpec) (ToolList, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&harnessv1.ToolList{Tools: specs})
	if err != nil {
		return ToolList{}, fmt.Errorf("encode the tools of the run: %w", err)
	}
	return ToolList{Digest: content.Digest(data), Data: data}, nil
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
func AsksUser(s runstate.DefinitionFields, definition *agent.Definition) bool {
	decision, _ := definition.Policy.Decide(&harnessv1.ToolSpec{Name: harnesstool.AskUser}, "{}", policy.Exemptions{})
	return !s.GetAutonomous() && decision != harnessv1.ToolDecision_TOOL_DECISION_DENY
}

// Waits reports whether the agent of a run has the tool wait: the run's settings allow it, and
// the policy of the agent does not deny it.
func Waits(s runstate.DefinitionFields, definition *agent.Definition) bool {
	decision, _ := definition.Policy.Decide(&harnessv1.ToolSpec{Name: harnesstool.Wait}, "{}", policy.Exemptions{})
	return s.GetConfig().GetTools().GetWait() && decision != harnessv1.ToolDecision_TOOL_DECISION_DENY
}

// ParseClientTools reads the tools that a snapshot refers to.
func ParseClientTools(text string) (*harnessv1.ClientTools, error) {
	tools := &harnessv1.ClientTools{}
	return tools, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal([]byte(text), tools)
}
