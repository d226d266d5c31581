package agentfile

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// hint returns the end of the error about an unknown name: the known name that is
// nearest to it, or all known names.
func hint(name string, known []string) string {
	if nearest := fault.Nearest(name, known); nearest != "" {
		return "; did you mean " + nearest + "?"
	}
	return "; expected one of " + strings.Join(known, ", ")
}
