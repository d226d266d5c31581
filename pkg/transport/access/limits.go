package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Limits are what a request may name, whatever the token of its caller. The zero value has
// no limits.
type Limits struct {
	// Scripts returns an error for a file that a scripted model may not be read from, with
	// what to do. Nil permits every file.
	Scripts func(path string) (rel string, err error)
	// Target returns an error for a service that a hook, a check, a context provider or a
	// summarizer may not be, with what to do. It does not apply to the holder of a key. Nil
	// permits every service.
	Target func(target string) error
}

// check refuses a request that is beyond the limits.
func (l Limits) check(c Caller, req any) error {
	switch r := req.(type) {
	case *harnessv1.StartRunRequest:
		return l.checkStart(c, r.GetSpec())
	case *harnessv1.RunRequest:
		if err := l.checkStart(c, r.GetStart().GetSpec()); err != nil {
			return err
		}
	}
	return l.checkScripts(changedModel(req))
}

func (l Limits) checkStart(c Caller, spec *harnessv1.RunSpec) error {
	if spec == nil {
		return nil
	}
	if err := l.checkScripts(modelsOf(spec)); err != nil {
		return err
	}
	return l.checkTargets(c, spec)
}

func (l Limits) checkScripts(models []namedModel) error {
	if l.Scripts == nil {
		return nil
	}
	for _, m := range models {
		provider, file, _ := strings.Cut(m.model, ":")
		if !slices.Contains(scripted, provider) {
			continue
		}
		if _, err := l.Scripts(file); err != nil {
			return invalid(m.field, err)
		}
	}
	return nil
}

func (l Limits) checkTargets(c Caller, spec *harnessv1.RunSpec) error {
	if l.Target == nil || c.key {
		return nil
	}
	for _, t := range targetsOf(spec) {
		if t.target == "" {
			continue
		}
		if err := l.Target(t.target); err != nil {
			return invalid(t.field, err)
		}
	}
	return nil
}

// namedTarget is a service in a request.
type namedTarget struct{ field, target string }

// customModel begins the name of a model that is a service.
const customModel = "grpc:"

// targetsOf returns every service that a run calls; an empty one is none.
func targetsOf(spec *harnessv1.RunSpec) []namedTarget {
	var targets []namedTarget
	add := func(field, target string) { targets = append(targets, namedTarget{field, target}) }
	for i, h := range spec.GetAgent().GetHooks() {
		add(fmt.Sprintf("spec.agent.hooks[%d].grpc", i), h.GetGrpc())
	}
	for i, p := range spec.GetAgent().GetContextProviders() {
		add(fmt.Sprintf("spec.agent.context_providers[%d].grpc", i), p.GetGrpc())
	}
	for i, s := range spec.GetAgent().GetMcp() {
		add(fmt.Sprintf("spec.agent.mcp[%d].grpc", i), s.GetGrpc())
	}
	checks := func(field string, contract *harnessv1.TaskContract) {
		for i, output := range contract.GetRequiredOutputs() {
			add(fmt.Sprintf("%s.required_outputs[%d].predicate.grpc", field, i), output.GetPredicate().GetGrpc())
		}
	}
	checks("spec.contract", spec.GetContract())
	forSubAgents(spec, func(field string, a *harnessv1.SubAgent) { checks(field+".contract", a.GetContract()) })
	for _, m := range modelsOf(spec) {
		if target, custom := strings.CutPrefix(m.model, customModel); custom {
			add(m.field, target)
		}
	}
	return targets
}

// invalid returns the refusal of a field.
func invalid(field string, err error) error {
	st, _ := fault.Status(fault.Invalid(field, "%v", err))
	return st.Err()
}
