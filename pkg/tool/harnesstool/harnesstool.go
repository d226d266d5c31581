// Package harnesstool has the harness's own tools: tools that change the run
// itself instead of a workspace, one file for each.
//
// A tool is one value: its specification, the runs that have it, and the effect of a
// call. To add a tool, add a file that registers it.
package harnesstool

import (
	"cmp"
	"slices"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Tool is a tool of the harness. A call runs, it reads messages of the run, or it waits
// for the answer to a question.
type Tool struct {
	// Tool has the spec, and Run unless calls read messages or wait.
	tool.Tool[Run]
	// Alias is another name by which models call the tool; it is never listed.
	Alias string
	// Enabled reports whether a run has the tool; nil: every run has it.
	Enabled func(Setting) bool
	// Describe returns the spec of the tool in a run; nil: Spec in every run.
	Describe func(Setting) *harnessv1.ToolSpec
	// Unrestricted is true if no tool policy applies to calls.
	Unrestricted bool
	// Reserved is true if clients may not declare a tool of this name, whether or not
	// the run has the tool.
	Reserved bool
	// Messages returns which messages a call reads; nil if calls read none.
	Messages func(arguments string) readback.Request
	// Question returns what a call asks the user; nil if calls do not wait.
	Question func(arguments string) string
	// Wait returns the time or event that a call waits for, or an error that describes its
	// invalid arguments; nil if calls wait for nothing but an answer.
	Wait func(arguments string) (*harnessv1.WaitState, error)
	// Search is true if calls search the tools of servers.
	Search bool
	// Product is true if the arguments are the product of the agent: other arguments are
	// another outcome, also with the same result.
	Product bool
	// Summary returns what a call reports about the finished work; nil if a call does
	// not end the work.
	Summary func(arguments *harnessv1.Content) *harnessv1.Content
}

// Run computes what a call changes. The arguments have passed the schema.
type Run func(ledger *harnessv1.WorkItemLedger, arguments string) workitem.Outcome

// Setting is what decides which tools a run has.
type Setting struct {
	// WorkItems is true if the run has work items.
	WorkItems bool
	// Questions is true if the agent may ask the user.
	Questions bool
	// Compaction is true if the window of the run is compacted.
	Compaction bool
	// OutputSchema is the JSON Schema of the result; empty if the result has none.
	OutputSchema string
	// Wait is true if calls can wait.
	Wait bool
	// WaitURL is true if calls can wait for an address: the run has web tools that read one.
	WaitURL bool
	// ArtifactKinds are the kinds of artifacts that the run saves; empty: it saves none.
	ArtifactKinds []string
	// Servers are the names of the servers whose tools the run searches; empty: it searches none.
	Servers []string
}

// registration is a tool with its position.
type registration struct {
	position int
	tool     *Tool
}

var registered []registration

// register adds a tool at a position of the list that models see. Each file calls it
// once, when the package is initialised.
func register(position int, t *Tool) *Tool {
	registered = append(registered, registration{position, t})
	return t
}

// all returns the tools by position, then by name.
var all = sync.OnceValue(func() []*Tool {
	slices.SortFunc(registered, func(a, b registration) int {
		return cmp.Or(a.position-b.position, cmp.Compare(a.tool.Spec.GetName(), b.tool.Spec.GetName()))
	})
	tools := make([]*Tool, len(registered))
	for i, r := range registered {
		tools[i] = r.tool
	}
	return tools
})

// Specs returns the tools of a run. The specs are shared and must not be changed.
func Specs(s Setting) []*harnessv1.ToolSpec {
	var specs []*harnessv1.ToolSpec
	for _, t := range all() {
		switch {
		case t.Enabled != nil && !t.Enabled(s):
		case t.Describe != nil:
			specs = append(specs, t.Describe(s))
		default:
			specs = append(specs, t.Spec)
		}
	}
	return specs
}

// Names returns the names of all tools, in order.
func Names() []string {
	names := make([]string, 0, len(all()))
	for _, t := range all() {
		names = append(names, t.Spec.GetName())
	}
	return names
}

// Find returns the tool with a name or an alias; nil if there is none.
func Find(name string) *Tool {
	i := slices.IndexFunc(all(), func(t *Tool) bool { return t.Spec.GetName() == name || t.Alias != "" && t.Alias == name })
	if i < 0 {
		return nil
	}
	return all()[i]
}

// Of returns the tool that a spec describes; nil if it is the spec of a tool that
// runs elsewhere.
func Of(spec *harnessv1.ToolSpec) *Tool {
	if spec.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS {
		return nil
	}
	return Find(spec.GetName())
}

// CanonicalName returns the name of the tool that is called by its alias, and any
// other name unchanged.
func CanonicalName(name string) string {
	if t := Find(name); t != nil {
		return t.Spec.GetName()
	}
	return name
}

// IsReserved reports whether clients may not declare a tool of that name.
func IsReserved(name string) bool {
	t := Find(name)
	return t != nil && (t.Reserved || t.Alias == name)
}
