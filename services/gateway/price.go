package gateway

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// CheckPrices refuses a budget in US dollars of a run that has a model without a price: what
// that model costs does not count, so the run would not park. priced reports whether the
// price of a model is known.
func CheckPrices(s *harnessv1.RunSpec, priced func(model string) bool) error {
	models := append([]string{s.GetAgent().GetModel()}, s.GetAgent().GetFallbackModels()...)
	if m := s.GetConfig().GetContext().GetSummarizer().GetModel(); m != "" {
		models = append(models, m)
	}
	models = append(models, s.GetConfig().GetQuality().GetModel())
	return checkPrices("spec.config.budgets", s.GetConfig().GetBudgets(), models, priced)
}

// checkPrices refuses budgets with a cost for models of which one has no price.
func checkPrices(field string, b *harnessv1.Budgets, models []string, priced func(model string) bool) error {
	if b.GetCostUsd() == 0 || b.GetAllowUnpriced() {
		return nil
	}
	for _, m := range models {
		if m == "" || priced(m) {
			continue
		}
		return fault.Invalid(field+".cost_usd",
			"the price of the model %q is not known, so what it costs would not count: add its prices to a catalogue (--catalogue FILE), leave cost_usd out, or set allow_unpriced: true",
			content.Cut(m, 80))
	}
	return nil
}
