package workitem

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Invalid says what is wrong with work item templates, and where.
type Invalid struct {
	// Field is the path of the field, such as work_item_templates[2].id.
	Field string
	// Message says what is wrong with it.
	Message string
}

func (e *Invalid) Error() string { return e.Field + ": " + e.Message }

// CheckTemplates checks the items that every run of an agent begins with: at most 64,
// with titles of 1 to 120 bytes, notes of at most 512 bytes, and ids that are usable
// and unique where they are given. The error is an *Invalid.
func CheckTemplates(templates []*harnessv1.WorkItemTemplate) error {
	if len(templates) > MaxOpen {
		return &Invalid{"work_item_templates", fmt.Sprintf("%d items; at most %d are allowed", len(templates), MaxOpen)}
	}
	first := map[string]int{}
	for n, t := range templates {
		invalid := func(field, format string, args ...any) error {
			return &Invalid{fmt.Sprintf("work_item_templates[%d].%s", n, field), fmt.Sprintf(format, args...)}
		}
		if id := t.GetId(); id != "" {
			if !idFormat.MatchString(id) {
				return invalid("id", "%q cannot be used: %s", content.Line(id, 80), idRule)
			}
			if at, taken := first[id]; taken {
				return invalid("id", "%q is the id of work_item_templates[%d] too", id, at)
			}
			first[id] = n
		}
		if strings.TrimSpace(t.GetTitle()) == "" {
			return invalid("title", "missing; say what is to be done")
		}
		if len(t.GetTitle()) > MaxTitle {
			return invalid("title", "%d bytes; at most %d are allowed, the rest belongs into notes", len(t.GetTitle()), MaxTitle)
		}
		if len(t.GetNotes()) > MaxNotes {
			return invalid("notes", "%d bytes; at most %d are allowed", len(t.GetNotes()), MaxNotes)
		}
		if harnessv1.WorkItemPriority_name[int32(t.GetPriority())] == "" {
			return invalid("priority", "%d is none; use HIGH, MEDIUM or LOW", t.GetPriority())
		}
		if harnessv1.ArtifactRole_name[int32(t.GetRole())] == "" {
			return invalid("role", "%d is none; use DELIVERABLE, WORKING or CONTROL", t.GetRole())
		}
	}
	return nil
}
