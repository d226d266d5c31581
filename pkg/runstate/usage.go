package runstate

import (
	"math"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxFigure is what each figure of a usage, and each sum of figures, saturates at: the
// largest number that all clients can read.
const maxFigure = math.MaxInt64

// add returns a + b, at most maxFigure.
func add(a, b uint64) uint64 {
	a, b = min(a, maxFigure), min(b, maxFigure)
	return min(a+b, maxFigure)
}

// since returns what a figure has grown by. A figure that is saturated has grown by
// everything, so that no budget holds for it.
func since(now, before uint64) uint64 {
	if now >= maxFigure {
		return maxFigure
	}
	return now - min(before, now)
}

// TotalTokens returns the tokens that were sent and received. It saturates.
func TotalTokens(u *harnessv1.Usage) uint64 { return add(u.GetInputTokens(), u.GetOutputTokens()) }

// SumUsage adds a usage to a sum. Each figure saturates at 2^63 - 1. A sum is estimated if a part of it is.
func SumUsage(sum, u *harnessv1.Usage) {
	sum.InputTokens = add(sum.GetInputTokens(), u.GetInputTokens())
	sum.OutputTokens = add(sum.GetOutputTokens(), u.GetOutputTokens())
	sum.CachedInputTokens = add(sum.GetCachedInputTokens(), u.GetCachedInputTokens())
	sum.CostMicroUsd = add(sum.GetCostMicroUsd(), u.GetCostMicroUsd())
	sum.ReasoningTokens = add(sum.GetReasoningTokens(), u.GetReasoningTokens())
	sum.CacheWriteTokens = add(sum.GetCacheWriteTokens(), u.GetCacheWriteTokens())
	if u.GetEstimated() {
		sum.Estimated = true
	}
}
