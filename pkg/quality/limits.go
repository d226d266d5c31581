package quality

import (
	"fmt"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Passed returns the checkpoints that a text of a segment has passed: those before, and those
// up to its length in code points.
func Passed(chars uint64, before []uint32) []uint32 {
	passed := slices.Clone(before)
	for _, n := range checkpoints {
		if chars >= uint64(n) && !slices.Contains(passed, n) {
			passed = append(passed, n)
		}
	}
	return passed
}

// CheckThresholds refuses scores out of their range or order. NaN is out of every range.
func CheckThresholds(r *harnessv1.QualityRetryConfig) error {
	good, low := goodSynthesis, defaultLow
	if r.GoodEnoughScore != nil {
		good = r.GetGoodEnoughScore()
	}
	if r.LowQualityThreshold != nil {
		low = r.GetLowQualityThreshold()
	}
	if !(good > 0 && good <= 1) {
		return fmt.Errorf("good_enough_score %v: must be above 0, at most 1", good)
	}
	if !(low >= 0 && low <= good) {
		return fmt.Errorf("low_quality_threshold %v: must be 0 to good_enough_score, which is %v", low, good)
	}
	return nil
}
