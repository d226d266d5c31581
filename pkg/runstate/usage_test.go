package runstate

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// figures sets every figure of a usage.
func figures(n uint64) *harnessv1.Usage {
	u := &harnessv1.Usage{}
	for _, f := range fieldsOf(u) {
		u.ProtoReflect().Set(f, protoreflect.ValueOfUint64(n))
	}
	return u
}

func fieldsOf(u *harnessv1.Usage) (all []protoreflect.FieldDescriptor) {
	fields := u.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if fields.Get(i).Kind() == protoreflect.Uint64Kind {
			all = append(all, fields.Get(i))
		}
	}
	return all
}

// TestUsageSaturates: no sum of any figures is smaller than one of them.
func TestUsageSaturates(t *testing.T) {
	for _, c := range []struct{ a, b, want uint64 }{
		{1, 2, 3}, {math.MaxInt64 - 1, 1, math.MaxInt64}, {math.MaxInt64, 1, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxUint64, 1, math.MaxInt64}, {math.MaxUint64, math.MaxUint64, math.MaxInt64}, {0, math.MaxUint64, math.MaxInt64}, {1 << 63, 1 << 63, math.MaxInt64},
	} {
		s := &harnessv1.Snapshot{}
		AddUsage(s, figures(c.a))
		AddTokens(s, figures(c.b))
		for _, f := range fieldsOf(s.GetSpent().GetUsage()) {
			if got := s.GetSpent().GetUsage().ProtoReflect().Get(f).Uint(); got != c.want {
				t.Errorf("%s: %d + %d = %d, want %d", f.Name(), c.a, c.b, got, c.want)
			}
		}
		if got := TotalTokens(&harnessv1.Usage{InputTokens: c.a, OutputTokens: c.b}); got != c.want {
			t.Errorf("%d + %d = %d tokens, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestASumIsEstimatedIfAPartIs: a part that was reported does not hide one that was estimated.
func TestASumIsEstimatedIfAPartIs(t *testing.T) {
	s := &harnessv1.Snapshot{}
	AddUsage(s, &harnessv1.Usage{InputTokens: 1})
	if s.GetSpent().GetUsage().GetEstimated() {
		t.Error("a reported usage is estimated")
	}
	AddUsage(s, &harnessv1.Usage{InputTokens: 1, Estimated: true})
	AddUsage(s, &harnessv1.Usage{InputTokens: 1})
	if !s.GetSpent().GetUsage().GetEstimated() {
		t.Error("the sum is not marked")
	}
}

// TestSaturatedUsageExceedsEachBudget: a budget does not hold again because a sum has
// wrapped, or because it does not grow any more.
func TestSaturatedUsageExceedsEachBudget(t *testing.T) {
	limit, usd := uint64(1000), 1.0
	for name, budgets := range map[string]*harnessv1.Budgets{"tokens": {Tokens: &limit}, "cost": {CostUsd: &usd}} {
		for _, calls := range []int{1, 2, 3} {
			s := &harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Budgets: budgets}}
			for range calls {
				AddUsage(s, figures(math.MaxInt64))
			}
			if w := ExceededBudget(s, time.Time{}); w.GetBudget() != name || w.GetUsed() < 1e12 {
				t.Errorf("%s after %d calls: %v", name, calls, w)
			}
			s.Spent.UsageBeforeSegment = figures(math.MaxInt64)
			if w := ExceededBudget(s, time.Time{}); w.GetBudget() != name {
				t.Errorf("%s in a later segment: %v", name, w)
			}
		}
		s := &harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Budgets: budgets}, Spent: &harnessv1.Spent{Usage: figures(400), UsageBeforeSegment: figures(500)}}
		if w := ExceededBudget(s, time.Time{}); w != nil {
			t.Errorf("%s of a segment that has spent nothing: %v", name, w)
		}
	}
}
