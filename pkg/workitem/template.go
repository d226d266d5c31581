package workitem

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// CheckTemplates checks the items that every run of an agent starts with: at most 64,
// with titles of 1 to 120 bytes, notes of at most 512 bytes, and valid, unique ids where
// they are given. The error is a *fault.FieldError.
func CheckTemplates(templates []*harnessv1.WorkItemTemplate) error {
	if len(templates) > MaxOpen {
		return fault.Invalid("work_item_templates", "%d items exceed the limit of %d", len(templates), MaxOpen)
	}
	first := map[string]int{}
	for n, t := range templates {
		invalid := func(field, format string, args ...any) error {
			return fault.Invalid(fmt.Sprintf("work_item_templates[%d].%s", n, field), format, args...)
		}
		if id := t.GetId(); id != "" {
			if !idFormat().MatchString(id) {
				return invalid("id", "invalid id %q: %s", content.Line(id, 80), idRule)
			}
			if at, taken := first[id]; taken {
				return invalid("id", "duplicate id %q: work_item_templates[%d] has it", id, at)
			}
			first[id] = n
		}
		if strings.TrimSpace(t.GetTitle()) == "" {
			return invalid("title", "is required: what is to be done")
		}
		if len(t.GetTitle()) > MaxTitle {
			return invalid("title", "%d bytes exceed the limit of %d: put the rest into notes", len(t.GetTitle()), MaxTitle)
		}
		if len(t.GetNotes()) > MaxNotes {
			return invalid("notes", "%d bytes exceed the limit of %d", len(t.GetNotes()), MaxNotes)
		}
		if harnessv1.WorkItemPriority_name[int32(t.GetPriority())] == "" {
			return invalid("priority", "unknown priority %d: expected HIGH, MEDIUM or LOW", t.GetPriority())
		}
		if harnessv1.ArtifactRole_name[int32(t.GetRole())] == "" {
			return invalid("role", "unknown role %d: expected DELIVERABLE, WORKING or CONTROL", t.GetRole())
		}
	}
	return nil
}
