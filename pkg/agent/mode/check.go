package mode

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

const (
	maxModes       = 16      // custom modes of an agent
	maxTools       = 128     // tools of a mode
	maxDescription = 1 << 10 // bytes of a description
)

var nameFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,32}$`) })

// Check rejects custom modes that are invalid. The error is a *fault.FieldError.
func Check(custom []*harnessv1.ModeSpec) error {
	if len(custom) > maxModes {
		return fault.Invalid("modes", "%d modes exceed the limit of %d", len(custom), maxModes)
	}
	for i, m := range custom {
		if field, message := checkMode(m, custom[:i]); message != "" {
			return fault.Invalid(fmt.Sprintf("modes[%d].%s", i, field), "%s", message)
		}
	}
	return nil
}

// checkMode returns the field of a mode that is invalid, and why; an empty message if
// none is. before are the modes before it.
func checkMode(m *harnessv1.ModeSpec, before []*harnessv1.ModeSpec) (field, message string) {
	name := m.GetName()
	switch {
	case name == "":
		return "name", "is required: the name of the mode"
	case !nameFormat().MatchString(name):
		return "name", fmt.Sprintf("%q does not match [a-z0-9_-]{1,32}", content.Cut(name, 80))
	case name == Plan || name == Execute:
		return "name", fmt.Sprintf("%q is a built-in mode; choose another name", name)
	case find(name, before) != nil:
		return "name", fmt.Sprintf("duplicate mode %q", name)
	case len(m.GetDescription()) > maxDescription:
		return "description", fmt.Sprintf("%d bytes exceed the limit of %d", len(m.GetDescription()), maxDescription)
	case len(m.GetTools()) > maxTools:
		return "tools", fmt.Sprintf("%d tools exceed the limit of %d", len(m.GetTools()), maxTools)
	}
	for i, allowed := range m.GetTools() {
		switch {
		case !tool.ValidName(allowed):
			return fmt.Sprintf("tools[%d]", i), fmt.Sprintf("%q does not match [A-Za-z0-9_-]{1,64}", content.Cut(allowed, 80))
		case slices.Contains(m.GetTools()[:i], allowed):
			return fmt.Sprintf("tools[%d]", i), fmt.Sprintf("duplicate tool %q", allowed)
		}
	}
	return "", ""
}
