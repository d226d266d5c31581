package tree

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// Bounds of a definition: bytes of its texts, and names of tools.
const (
	maxDescription  = 1 << 10
	maxInstructions = 64 << 10
	maxTools        = 64
)

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Resolve returns definitions with the built-in ones written out, at all levels.
func Resolve(agents []*harnessv1.SubAgent) []*harnessv1.SubAgent {
	var resolved []*harnessv1.SubAgent
	for _, a := range agents {
		a = proto.CloneOf(a)
		if b := builtin(a.GetName()); b != nil && a.GetInstructions() == "" {
			a.Instructions = b.GetInstructions()
			a.Description = cmp.Or(a.GetDescription(), b.GetDescription())
			if a.ReadOnly == nil {
				a.ReadOnly = b.ReadOnly
			}
			if a.MaxAnswerWords == nil {
				a.MaxAnswerWords = b.MaxAnswerWords
			}
		}
		a.Agents = Resolve(a.GetAgents())
		resolved = append(resolved, a)
	}
	return resolved
}

// Check checks definitions before they are resolved. modes are the names of the modes that
// the parent has. Its error is a *fault.FieldError whose path begins with field.
func Check(field string, agents []*harnessv1.SubAgent, modes []string) error {
	return check(field, agents, modes, nil)
}

// check checks the definitions that the sub-agents above have.
func check(field string, agents []*harnessv1.SubAgent, modes, above []string) error {
	depth := len(above) + 1
	switch {
	case len(agents) > MaxAgents:
		return fault.Invalid(field, "has %d sub-agents, more than %d", len(agents), MaxAgents)
	case len(agents) > 0 && depth > MaxDepth:
		return fault.Invalid(field, "is %d levels deep, more than %d", depth, MaxDepth)
	}
	taken := map[string]bool{}
	for i, a := range agents {
		at, name := fmt.Sprintf("%s[%d]", field, i), a.GetName()
		isBuiltin := builtin(name) != nil && a.GetInstructions() == ""
		switch {
		case !toolName.MatchString(name):
			return fault.Invalid(at+".name", "%q must match [A-Za-z0-9_-]{1,64}", name)
		case harnesstool.IsReserved(name) || harnesstool.Find(name) != nil || reserved(name):
			return fault.Invalid(at+".name", "%q is a tool of the harness; choose another name", name)
		case slices.Contains(above, name):
			return fault.Invalid(at+".name", "%q would have itself as a sub-agent; choose another name", name)
		case taken[name]:
			return fault.Invalid(at+".name", "%q is defined twice", name)
		case a.GetInstructions() == "" && !isBuiltin:
			return fault.Invalid(at+".instructions", "must be set: %q is not built in (built in are %s)", name, strings.Join(Builtins(), ", "))
		case a.GetDescription() == "" && !isBuiltin:
			return fault.Invalid(at+".description", "must be set: the model chooses sub-agents by it")
		case len(a.GetDescription()) > maxDescription:
			return fault.Invalid(at+".description", "has %d bytes, more than %d", len(a.GetDescription()), maxDescription)
		case len(a.GetInstructions()) > maxInstructions:
			return fault.Invalid(at+".instructions", "has %d bytes, more than %d", len(a.GetInstructions()), maxInstructions)
		case len(a.GetTools()) > maxTools:
			return fault.Invalid(at+".tools", "has %d names, more than %d", len(a.GetTools()), maxTools)
		case a.GetMode() != "" && !slices.Contains(modes, a.GetMode()):
			return fault.Invalid(at+".mode", "there is no mode %q; there are %s", a.GetMode(), strings.Join(modes, ", "))
		case a.GetWorkspace() != "" && a.GetWorkspace() != "shared" && a.GetWorkspace() != Worktree:
			return fault.Invalid(at+".workspace", "%q: must be shared or worktree", a.GetWorkspace())
		case a.MaxTurns != nil && a.GetMaxTurns() == 0:
			return fault.Invalid(at+".max_turns", "must be at least 1")
		case a.GetDeadline() != nil && a.GetDeadline().AsDuration() <= 0:
			return fault.Invalid(at+".deadline", "%v: must be greater than 0", a.GetDeadline().AsDuration())
		}
		taken[name] = true
		for j, tool := range a.GetTools() {
			if !toolName.MatchString(tool) {
				return fault.Invalid(fmt.Sprintf("%s.tools[%d]", at, j), "%q must match [A-Za-z0-9_-]{1,64}", tool)
			}
		}
		if err := check(at+".agents", a.GetAgents(), modes, append(slices.Clip(above), name)); err != nil {
			return err
		}
	}
	return nil
}

// CheckNames refuses sub-agents that have the name of a tool, at all levels: the model could not tell
// them apart. Its error is a *fault.FieldError whose path begins with field.
func CheckNames(field string, agents []*harnessv1.SubAgent, tools []string) error {
	for i, a := range agents {
		at := fmt.Sprintf("%s[%d]", field, i)
		if slices.Contains(tools, a.GetName()) {
			return fault.Invalid(at+".name", "a tool %q already exists; choose another name for the sub-agent", a.GetName())
		}
		if err := CheckNames(at+".agents", a.GetAgents(), tools); err != nil {
			return err
		}
	}
	return nil
}

// Names returns the names of sub-agents, at all levels.
func Names(agents []*harnessv1.SubAgent) []string {
	var names []string
	for _, a := range agents {
		names = append(append(names, a.GetName()), Names(a.GetAgents())...)
	}
	return names
}

// Lookup returns a resolved definition by its name; nil if there is none.
func Lookup(agents []*harnessv1.SubAgent, name string) *harnessv1.SubAgent {
	for _, a := range agents {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}
