// Package agent holds what an agent is made of beyond its state, ready for
// use: the tool policy, just-in-time rules, subscribers, modes and the task
// contract. It never changes in a run, so it is compiled once and kept by digest.
//
// Compiling is pure. Cache reads what is stored elsewhere.
package agent

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Definition is a definition ready for use. It is never changed and may be used by
// many goroutines.
type Definition struct {
	// Policy of tools.
	Policy *policy.Policy
	// Rules are the just-in-time instructions, built-in ones included.
	Rules *jit.Rules
	// Hooks are the subscribers; nil when there are none.
	Hooks *hook.Set
	// Modes of the agent's own.
	Modes []*harnessv1.ModeSpec
	// Contract is nil without one.
	Contract *contract.Contract
	// Digest names it: equal ones have equal digests.
	Digest string
}

// StoredForm is the definition and the contract that a spec makes, for the first state of
// a run. Either is nil when the spec says nothing of it.
func StoredForm(spec *harnessv1.RunSpec) (*harnessv1.Definition, *harnessv1.TaskContract) {
	agent := spec.GetAgent()
	d := &harnessv1.Definition{Tools: agent.GetTools(), Jit: agent.GetJit(), Hooks: agent.GetHooks(), Modes: agent.GetModes()}
	if proto.Size(d) == 0 {
		d = nil
	}
	if spec.GetContract() == nil {
		return d, nil
	}
	return d, contract.Resolve(spec.GetContract())
}

// Compile compiles a definition and a resolved contract; nil ones are empty.
func Compile(d *harnessv1.Definition, c *harnessv1.TaskContract) (*Definition, error) {
	out := &Definition{Modes: d.GetModes()}
	var err error
	if out.Policy, err = policy.Compile(d.GetTools()); err != nil {
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
