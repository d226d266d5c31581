package input

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// declares reports whether the run already has these tools and no stored input declares
// others.
func (s State) declares(d *harnessv1.ToolsDeclared) bool {
	return s.Step.GetSnapshot().GetClientTools().GetBlob().GetDigest() == d.GetTools().GetBlob().GetDigest() &&
		!s.waits(func(i *harnessv1.InboxItem) bool { return i.GetToolsDeclared() != nil })
}
