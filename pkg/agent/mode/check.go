package mode

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// Modes of one's own in an agent, tools that one of them names, and bytes of its
	// description.
	maxModes       = 16
	maxTools       = 128
	maxDescription = 1 << 10
)

var (
	nameFormat = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)
	toolFormat = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// Invalid says what is wrong with a mode of one's own.
type Invalid struct {
	// The field, as modes[0].name.
	Field string
	// What is wrong with it.
	Message string
	// Where within the field's value, from 1; always 0, which is the whole.
	Line, Column int
}

// Error is the field and what is wrong with it.
func (e *Invalid) Error() string { return e.Field + ": " + e.Message }

// Check looks at the modes of an agent's own. The error is an *Invalid.
func Check(custom []*harnessv1.ModeSpec) error {
	if len(custom) > maxModes {
		return &Invalid{Field: "modes", Message: fmt.Sprintf("has %d modes; at most %d are allowed", len(custom), maxModes)}
	}
	for i, m := range custom {
		if field, message := wrong(m, custom[:i]); message != "" {
			return &Invalid{Field: fmt.Sprintf("modes[%d].%s", i, field), Message: message}
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
	case !nameFormat.MatchString(name):
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
	for i, tool := range m.GetTools() {
		switch {
		case !toolFormat.MatchString(tool):
			return fmt.Sprintf("tools[%d]", i), fmt.Sprintf("%q does not match [A-Za-z0-9_-]{1,64}", content.Cut(tool, 80))
		case slices.Contains(m.GetTools()[:i], tool):
			return fmt.Sprintf("tools[%d]", i), fmt.Sprintf("%q is there twice", tool)
		}
	}
	return "", ""
}
