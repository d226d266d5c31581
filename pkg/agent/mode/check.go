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
	// Modes of one's own in an agent, tools that one of them names, and bytes of its
	// description.
	maxModes       = 16
	maxTools       = 128
	maxDescription = 1 << 10
)

var (
	nameFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,32}$`) })
)

// Check refuses custom modes that are invalid. The error is a *fault.FieldError.
func Check(custom []*harnessv1.ModeSpec) error {
	if len(custom) > maxModes {
		return fault.Invalid("modes", "has %d modes; at most %d are allowed", len(custom), maxModes)
	}
	for i, m := range custom {
		if field, message := wrong(m, custom[:i]); message != "" {
			return fault.Invalid(fmt.Sprintf("modes[%d].%s", i, field), "%s", message)
		}
	}
	return nil
}

// wrong is what is wrong with a mode behind others; an empty message is nothing.
func wrong(m *harnessv1.ModeSpec, before []*harnessv1.ModeSpec) (field, message string) {
	name := m.GetName()
	switch {
	case name == "":
		return "name", "is empty; give the mode a name"
	case !nameFormat().MatchString(name):
		return "name", fmt.Sprintf("%q does not match [a-z0-9_-]{1,32}", content.Cut(name, 80))
	case name == Plan || name == Execute:
		return "name", fmt.Sprintf("%q is there already and cannot be changed; choose another name", name)
	case find(name, before) != nil:
		return "name", fmt.Sprintf("%q is there twice; give each mode its own name", name)
	case len(m.GetDescription()) > maxDescription:
		return "description", fmt.Sprintf("has %d bytes; at most %d are allowed", len(m.GetDescription()), maxDescription)
	case len(m.GetTools()) > maxTools:
		return "tools", fmt.Sprintf("has %d tools; at most %d are allowed", len(m.GetTools()), maxTools)
	}
	for i, allowed := range m.GetTools() {
		switch {
		case !tool.ValidName(allowed):
			return fmt.Sprintf("tools[%d]", i), fmt.Sprintf("%q does not match [A-Za-z0-9_-]{1,64}", content.Cut(allowed, 80))
		case slices.Contains(m.GetTools()[:i], allowed):
			return fmt.Sprintf("tools[%d]", i), fmt.Sprintf("%q is there twice", allowed)
		}
	}
	return "", ""
}
