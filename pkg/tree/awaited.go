package tree

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Awaited returns the children that a run waits for, without those that start once others end
// and those that have ended.
func Awaited(s *harnessv1.Snapshot) []*harnessv1.Child {
	return slices.DeleteFunc(slices.Clone(awaited(s)), func(c *harnessv1.Child) bool { return queued(c) || Ended(c) })
}
