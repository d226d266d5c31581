package model

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// NearestEffort returns the effort to request of a model with the efforts have when
// want is configured: want if have contains it or is empty, otherwise the highest one
// below want, otherwise the lowest of have. An unspecified want is returned unchanged.
func NearestEffort(have []harnessv1.Effort, want harnessv1.Effort) harnessv1.Effort {
	if want == harnessv1.Effort_EFFORT_UNSPECIFIED || len(have) == 0 || slices.Contains(have, want) {
		return want
	}
	below := harnessv1.Effort_EFFORT_UNSPECIFIED
	for _, e := range have {
		if e < want {
			below = max(below, e)
		}
	}
	if below != harnessv1.Effort_EFFORT_UNSPECIFIED {
		return below
	}
	return slices.Min(have)
}
