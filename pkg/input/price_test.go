package input

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestResumeWithABudgetThatWouldNotCount: a resume that sets a budget in US dollars is
// refused as a start is, unless the run or the resume allows models without a price.
func TestResumeWithABudgetThatWouldNotCount(t *testing.T) {
	priced := func(model string) bool { return model == "priced" }
	for _, c := range []struct {
		model, fallback string
		run, resume     *harnessv1.Budgets
		refused         bool
		to              string // the model of the resume
	}{
		{"priced", "priced", nil, &harnessv1.Budgets{CostUsd: proto.Float64(1)}, false, ""},
		{"free", "priced", nil, &harnessv1.Budgets{CostUsd: proto.Float64(1)}, true, ""},
		{"priced", "free", nil, &harnessv1.Budgets{CostUsd: proto.Float64(1)}, true, ""},
		{"free", "free", nil, &harnessv1.Budgets{Tokens: proto.Uint64(1)}, false, ""},
		{"free", "free", nil, nil, false, ""},
		{"free", "free", &harnessv1.Budgets{AllowUnpriced: proto.Bool(true)}, &harnessv1.Budgets{CostUsd: proto.Float64(1)}, false, ""},
		{"free", "free", &harnessv1.Budgets{AllowUnpriced: proto.Bool(true)}, &harnessv1.Budgets{CostUsd: proto.Float64(1), AllowUnpriced: proto.Bool(false)}, true, ""},
		{"free", "free", nil, &harnessv1.Budgets{CostUsd: proto.Float64(1), AllowUnpriced: proto.Bool(true)}, false, ""},
		{"priced", "priced", &harnessv1.Budgets{CostUsd: proto.Float64(1)}, nil, true, "free"},
		{"priced", "priced", nil, nil, false, "free"},
		{"free", "priced", &harnessv1.Budgets{CostUsd: proto.Float64(1)}, nil, false, "priced"},
	} {
		s := situations()["parked"]
		s.Step = proto.CloneOf(s.Step)
		s.Step.Snapshot.Model, s.Step.Snapshot.FallbackModels, s.Step.Snapshot.Config = c.model, []string{c.fallback}, &harnessv1.LoopConfig{Budgets: c.run}
		s.Priced = priced
		_, err := Admit(s, &harnessv1.InboxItem{Id: "new", Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: c.resume, Model: c.to}}})
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), `"free"`) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
