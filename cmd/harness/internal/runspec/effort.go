package runspec

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Effort is how much the model reasons.
type Effort struct{ effort harnessv1.Effort }

// UnmarshalText parses the name of an effort, in lower case.
func (f *Effort) UnmarshalText(text []byte) error {
	var known []string
	for i := range harnessv1.Effort(0).Descriptor().Values().Len() {
		v := harnessv1.Effort(0).Descriptor().Values().Get(i)
		if v.Number() == 0 {
			continue
		}
		name := agentfile.EnumName(v)
		if name == string(text) {
			f.effort = harnessv1.Effort(v.Number())
			return nil
		}
		known = append(known, name)
	}
	return fmt.Errorf("%q: expected one of %s", text, strings.Join(known, ", "))
}
