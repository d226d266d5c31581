package runstate

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxAdjustments bounds the adjustments that the state remembers.
const maxAdjustments = 32

// Adjust returns a list of adjustments with another one, which replaces one of the same
// kind for the same model, and of the same tool if it leaves one out. The oldest one is dropped beyond 32. It does not change list.
func Adjust(list []*harnessv1.ModelAdjustment, a *harnessv1.ModelAdjustment) []*harnessv1.ModelAdjustment {
	out := make([]*harnessv1.ModelAdjustment, 0, len(list)+1)
	for _, have := range list {
		if have.GetModel() != a.GetModel() || have.GetAdjustment() != a.GetAdjustment() || have.GetTool() != a.GetTool() {
			out = append(out, have)
		}
	}
	out = append(out, a)
	return out[max(0, len(out)-maxAdjustments):]
}
