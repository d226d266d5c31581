package spans

import (
	"math"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestUsageIsNeverNegative: a nonsensical figure is as large as an attribute can be.
func TestUsageIsNeverNegative(t *testing.T) {
	for _, a := range Usage(&harnessv1.Usage{InputTokens: math.MaxUint64, OutputTokens: 1 << 63, CostMicroUsd: math.MaxUint64}) {
		if a.Value.AsInt64() != math.MaxInt64 {
			t.Errorf("%s is %d", a.Key, a.Value.AsInt64())
		}
	}
}
