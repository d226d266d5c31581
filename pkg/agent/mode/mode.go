// Package mode is the modes of work: which tools an agent may use in each, and
// what the model is told of them. There are plan and execute, and the modes of an
// agent's own.
//
// It is pure. An empty name is execute everywhere. A mode that is not known
// allows nothing but to end the work: callers refuse its name before.
package mode

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// The modes that every run has.
const (
	// Plan allows what changes nothing outside the run.
	Plan = "plan"
	// Execute allows everything. It is the default.
	Execute = "execute"
)

// Names are the modes of an agent: plan, execute, and its own in their order.
func Names(custom []*harnessv1.ModeSpec) []string {
	names := []string{Plan, Execute}
	for _, m := range custom {
		names = append(names, m.GetName())
	}
	return names
}

// Exists says whether an agent has the mode.
func Exists(name string, custom []*harnessv1.ModeSpec) bool {
	return slices.Contains(Names(custom), resolve(name))
}

// Allows says whether a tool may be used in a mode. Ending the work is always
// allowed. Tools of the host, of clients, of MCP servers and sub-agents are judged by
// their annotations: one that has none may change something.
func Allows(name string, custom []*harnessv1.ModeSpec, spec *harnessv1.ToolSpec) bool {
	name = resolve(name)
	switch {
	case name == Execute || endsWork(spec.GetName()):
		return true
	case name == Plan:
		return changesNothing(spec)
	}
	m := find(name, custom)
	if m == nil || m.GetReadOnly() && !changesNothing(spec) {
		return false
	}
	return len(m.GetTools()) == 0 || slices.Contains(m.GetTools(), spec.GetName())
}

// changesNothing says whether a tool leaves everything outside the run as it is.
func changesNothing(spec *harnessv1.ToolSpec) bool {
	a := spec.GetAnnotations()
	if (a.GetReads() || a.GetExplores()) && !a.GetWrites() && !a.GetExecutes() {
		return true
	}
	switch spec.GetOrigin() {
	case harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT:
		return false
	}
	return harnesstool.Find(spec.GetName()) != nil // it changes the run alone
}

// endsWork reports whether a tool of the harness ends the work.
func endsWork(name string) bool {
	t := harnesstool.Find(name)
	return t != nil && t.Summary != nil
}

func resolve(name string) string {
	if name == "" {
		return Execute
	}
	return name
}

func find(name string, custom []*harnessv1.ModeSpec) *harnessv1.ModeSpec {
	i := slices.IndexFunc(custom, func(m *harnessv1.ModeSpec) bool { return m.GetName() == name })
	if i < 0 {
		return nil
	}
	return custom[i]
}
