// Package mode decides which tools an agent may use in each mode of work, and writes the
// texts for the model about modes. Every agent has the modes plan and execute; it may
// have custom modes.
//
// It is pure. An empty name means execute. An unknown mode allows only the tools that
// every mode allows; callers reject its name before that.
package mode

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// Built-in modes.
const (
	// Plan allows tools that change nothing outside the run.
	Plan = "plan"
	// Execute allows all tools. It is the default.
	Execute = "execute"
)

// Names returns the modes of an agent: plan, execute, and the custom ones in their order.
func Names(custom []*harnessv1.ModeSpec) []string {
	names := []string{Plan, Execute}
	for _, m := range custom {
		names = append(names, m.GetName())
	}
	return names
}

// Exists reports whether an agent has a mode.
func Exists(name string, custom []*harnessv1.ModeSpec) bool {
	return slices.Contains(Names(custom), resolve(name))
}

// Allows reports whether a tool may be used in a mode. The tools that end the work, and
// those that only read messages of the run again, are always allowed. Tools of the host, of clients, of MCP servers and sub-agents count as
// changing something unless their annotations say otherwise.
func Allows(name string, custom []*harnessv1.ModeSpec, spec *harnessv1.ToolSpec) bool {
	name = resolve(name)
	switch {
	case name == Execute || alwaysAllowed(spec.GetName()):
		return true
	case name == Plan:
		return changesNothing(spec)
	}
	m := find(name, custom)
	if m == nil || m.GetReadOnly() && !changesNothing(spec) {
		return false
	}
	return len(m.GetTools()) == 0 || slices.ContainsFunc(m.GetTools(), func(p string) bool { return tool.Matches(p, spec.GetName()) })
}

// changesNothing reports whether a tool changes nothing outside the run.
func changesNothing(spec *harnessv1.ToolSpec) bool {
	a := spec.GetAnnotations()
	if (a.GetReads() || a.GetExplores()) && !a.GetWrites() && !a.GetExecutes() {
		return true
	}
	switch spec.GetOrigin() {
	case harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT:
		return false
	default:
		return harnesstool.Find(spec.GetName()) != nil // it changes the run alone
	}
}

// alwaysAllowed reports whether a tool of the harness may be used in every mode.
func alwaysAllowed(name string) bool {
	t := harnesstool.Find(name)
	return t != nil && (t.Summary != nil || t.Messages != nil)
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
