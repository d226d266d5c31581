package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// maxNear is the maximum number of suggestions for an unknown name.
const maxNear = 3

// unknown returns the text for a model that called a tool that does not exist.
func (s *Set) unknown(name string) string {
	text := fmt.Sprintf("There is no tool named %q.", content.Clip(name, 80))
	if near := s.Near(name); len(near) > 0 {
		return text + " Did you mean " + strings.Join(near, " or ") + "?"
	}
	names := make([]string, 0, len(s.specs))
	for _, spec := range s.specs {
		names = append(names, spec.GetName())
	}
	return text + " The tools are: " + content.Clip(strings.Join(names, ", "), maxSchema) + "."
}

// Near returns up to three tool names similar to name, the nearest first. It ignores
// case and separators, and ranks by common prefix and edit distance.
func (s *Set) Near(name string) []string {
	type candidate struct {
		name     string
		distance int
	}
	wanted := fault.Plain(content.Clip(name, 128))
	if wanted == "" {
		return nil
	}
	var found []candidate
	for _, spec := range s.specs {
		plain := fault.Plain(spec.GetName())
		d := fault.EditDistance(wanted, plain)
		if min(len(wanted), len(plain)) >= 3 &&
			(strings.HasPrefix(plain, wanted) || strings.HasPrefix(wanted, plain)) {
			d = min(d, 1)
		}
		if d <= max(2, len(wanted)/3) && d < len(plain) {
			found = append(found, candidate{spec.GetName(), d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, c := range found[:min(len(found), maxNear)] {
		names = append(names, c.name)
	}
	return names
}
