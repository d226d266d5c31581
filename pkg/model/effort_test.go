package model_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

func TestNearestEffort(t *testing.T) {
	const (
		unset  = harnessv1.Effort_EFFORT_UNSPECIFIED
		none   = harnessv1.Effort_EFFORT_NONE
		low    = harnessv1.Effort_EFFORT_LOW
		medium = harnessv1.Effort_EFFORT_MEDIUM
		high   = harnessv1.Effort_EFFORT_HIGH
		xhigh  = harnessv1.Effort_EFFORT_XHIGH
		most   = harnessv1.Effort_EFFORT_MAX
	)
	for _, c := range []struct {
		have       []harnessv1.Effort
		want, sent harnessv1.Effort
	}{
		{nil, most, most},
		{nil, unset, unset},
		{[]harnessv1.Effort{low, high}, unset, unset},
		{[]harnessv1.Effort{low, high}, high, high},
		{[]harnessv1.Effort{high, low, medium}, most, high},
		{[]harnessv1.Effort{low, xhigh, high}, medium, low},
		{[]harnessv1.Effort{medium, high, low}, none, low},
		{[]harnessv1.Effort{none, high}, low, none},
	} {
		if got := model.NearestEffort(c.have, c.want); got != c.sent {
			t.Errorf("of %v, %v becomes %v, want %v", c.have, c.want, got, c.sent)
		}
	}
}
