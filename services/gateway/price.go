package gateway

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
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
	return input.CheckPrices("spec.config.budgets", s.GetConfig().GetBudgets(), models, priced)
}
