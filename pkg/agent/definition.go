// Package agent compiles the definition of an agent: everything that a run follows and
// that never changes in it.
//
// A definition is written in an agent file or a RunSpec and stored with the run. Each of
// its parts has a package that compiles it and decides with it:
//
//	part                    package    decides
//	tool policy             policy     which tool calls are allowed, denied or need an approval
//	just-in-time rules      jit        which instructions the next request has
//	hooks                   hook       what subscribers do to the run
//	modes of work           mode       which tools each mode allows
//	task contract           contract   whether the work is done
//	output schema           schema     whether the output of the work fits
//
// Expressions in any of them are compiled by package expr, which bounds their cost.
//
// Compile turns the stored form into a Definition, which decisions get next to their
// step. It is pure, and fails with a *fault.FieldError. Cache reads parts that are
// stored in blobs and compiles each definition once.
package agent

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// Definition is a compiled definition. It never changes and is safe for concurrent use.
type Definition struct {
	// Policy decides about tool calls.
	Policy *policy.Policy
	// Rules are the just-in-time rules, built-in ones included.
	Rules *jit.Rules
	// Hooks are the subscribers; nil if there are none.
	Hooks *hook.Set
	// Modes are the custom modes.
	Modes []*harnessv1.ModeSpec
	// Contract is the task contract; nil if there is none.
	Contract *contract.Contract
	// Output is the schema of the result, OutputSchema its text; nil and empty if the result
	// has none.
	Output       *schema.Schema
	OutputSchema string
	// Agents are the sub-agents, built-in ones written out.
	Agents []*harnessv1.SubAgent
	// OnlyTools are the only tools of the agent apart from those of the harness; empty: all.
	OnlyTools []string
	// ReadOnly: the agent has only tools that change nothing.
	ReadOnly bool
	// MaxAnswerWords bounds the answer, in words; 0: it has no bound.
	MaxAnswerWords uint32
	// Kinds are the kinds of work in addition to the built-in ones.
	Kinds []*harnessv1.WorkKind
	// Mcp are the servers of tools.
	Mcp []*harnessv1.McpServer
	// Skills are folders with skills.
	Skills []string
	// Web are the settings of the web tools; nil: it has none of them.
	Web *harnessv1.Web
	// Digest identifies the definition: equal definitions have equal digests.
	Digest string
}

// Has reports whether the agent may have a tool: it is one of its only tools, and changes nothing if the agent has only such.
func (d *Definition) Has(t *harnessv1.ToolSpec) bool {
	return tree.Listed(d.OnlyTools, t) && (!d.ReadOnly || !tree.Changes(t))
}

// StoredForm returns the definition and the contract of a spec as the first snapshot of
// its run stores them. Either is nil if the spec has none of its parts.
func StoredForm(spec *harnessv1.RunSpec) (*harnessv1.Definition, *harnessv1.TaskContract) {
	agent := spec.GetAgent()
	d := &harnessv1.Definition{
		Tools: append(mcptool.Rules(agent.GetMcp()), agent.GetTools()...), Jit: agent.GetJit(), Hooks: agent.GetHooks(),
		Modes: agent.GetModes(), OutputSchema: spec.GetOutputSchema(),
		Agents: tree.Resolve(agent.GetAgents()), OnlyTools: agent.GetOnlyTools(), ReadOnly: agent.GetReadOnly(), MaxAnswerWords: agent.GetMaxAnswerWords(),
		Kinds: agent.GetKinds(), Mcp: agent.GetMcp(), Skills: agent.GetSkills(), Web: agent.GetWeb(),
		Policies: agent.GetPolicies(),
	}
	if proto.Size(d) == 0 {
		d = nil
	}
	if spec.GetContract() == nil {
		return d, nil
	}
	c := contract.Resolve(spec.GetContract())
	contract.ResolveQuestions(c, agent.GetAutonomous())
	return d, c
}

// Compile compiles a definition and a resolved contract. Both may be nil.
func Compile(d *harnessv1.Definition, c *harnessv1.TaskContract) (*Definition, error) {
	out := &Definition{
		Modes: d.GetModes(), OutputSchema: d.GetOutputSchema(), Agents: d.GetAgents(), OnlyTools: d.GetOnlyTools(), ReadOnly: d.GetReadOnly(),
		MaxAnswerWords: d.GetMaxAnswerWords(), Kinds: d.GetKinds(), Mcp: d.GetMcp(), Skills: d.GetSkills(), Web: d.GetWeb(),
	}
	var err error
	if out.OutputSchema != "" {
		if out.Output, err = schema.Compile(out.OutputSchema, false); err != nil {
			return nil, fault.Invalid("output_schema", "%s", err)
		}
	}
	if out.Policy, err = policy.Compile(d.GetTools(), d.GetPolicies()...); err != nil {
		return nil, fmt.Errorf("tool policy: %w", err)
	}
	if out.Rules, err = jit.Compile(d.GetJit()); err != nil {
		return nil, fmt.Errorf("just-in-time rules: %w", err)
	}
	if out.Hooks, err = hook.Compile(d.GetHooks()); err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	if c != nil {
		if out.Contract, err = contract.Compile(contract.Resolve(c)); err != nil {
			return nil, fmt.Errorf("contract: %w", err)
		}
	}
	return out, nil
}
