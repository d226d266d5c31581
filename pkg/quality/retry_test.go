package quality_test

import (
	"fmt"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// limits is the published table of kinds, kept apart from the package's.
var limits = map[string]struct {
	attempts  uint32
	good, low float64
}{
	"synthesis": {3, 0.70, 0.50}, "full_pipeline": {3, 0.70, 0.50}, "chat": {2, 0.60, 0.40},
	"recommendation": {3, 0.65, 0.50}, "drafting": {3, 0.65, 0.50}, "own": {3, 0.65, 0.50},
}

// rules is the published decision as a table: the first rule whose condition is true decides.
var rules = []struct {
	reason   string
	retry    bool
	degraded bool
	when     func(a quality.Attempt, combined, gap float64) bool
}{
	{"Verification skipped", false, false, func(a quality.Attempt, _, _ float64) bool {
		return a.Fallback && a.ContractPassed && !a.RetryOnFallback
	}},
	{"Quality sufficient", false, false, func(a quality.Attempt, _, _ float64) bool {
		return a.ShortAnswer && a.VerifierPassed && a.Score >= a.Good
	}},
	{"Max attempts reached", false, false, func(a quality.Attempt, c, _ float64) bool { return a.Number >= a.Max && c >= a.Good }},
	{"Max attempts reached", false, true, func(a quality.Attempt, _, _ float64) bool { return a.Number >= a.Max }},
	{"Quality sufficient", false, false, func(a quality.Attempt, c, _ float64) bool { return c >= a.Good }},
	{"Marginal gap — retry unlikely to help", false, false, func(a quality.Attempt, _, g float64) bool { return g < 0.10 && a.ContractPassed }},
	{"Severe gap persists — source material may be insufficient", false, true, func(a quality.Attempt, _, g float64) bool {
		return g > 0.40 && a.Number >= 2
	}},
	{"Hard error — retrying", true, false, func(a quality.Attempt, _, _ float64) bool { return a.Error }},
	{"Contract failed — retrying with healing prompt", true, false, func(a quality.Attempt, _, _ float64) bool { return !a.ContractPassed }},
	{"Low quality — retrying", true, false, func(a quality.Attempt, _, _ float64) bool { return a.Score < a.Low }},
	{"Quality sufficient", false, false, func(quality.Attempt, float64, float64) bool { return true }},
}

func TestShouldRetryDecidesEveryCellAsPublished(t *testing.T) {
	own := []*harnessv1.WorkKind{{Name: "own"}}
	reasons := map[string]bool{}
	booleans := []bool{false, true}
	for kind, table := range limits {
		limit, good, low := quality.Limits(quality.KindOf(kind, own, 0), nil)
		if limit != table.attempts || good != table.good || low != table.low {
			t.Errorf("%s: %d attempts, good %v, low %v", kind, limit, good, low)
		}
		for number := uint32(1); number <= limit+1; number++ {
			for hundredths := range 101 {
				for _, contract := range booleans {
					for _, failed := range booleans {
						for _, fallback := range booleans {
							for _, retry := range booleans {
								for _, passed := range booleans {
									a := quality.Attempt{
										Number: number, Max: limit, Good: good, Low: low, ContractPassed: contract, VerifierPassed: passed,
										Score: float64(hundredths) / 100, Error: failed, Fallback: fallback, RetryOnFallback: retry,
									}
									reasons[checkDecision(t, a)] = true
									a.ShortAnswer = kind == "chat" && !contract
									checkDecision(t, a)
								}
							}
						}
					}
				}
			}
		}
	}
	// Limits of the agent's kinds reach the rest of the rules.
	for _, a := range []quality.Attempt{
		{Number: 1, Max: 3, Good: 1, Low: 0.5, ContractPassed: true, Score: 0.6},
		{Number: 1, Max: 3, Good: 1, Low: 0.9, ContractPassed: true, Score: 0.6},
	} {
		reasons[checkDecision(t, a)] = true
	}
	for _, r := range rules {
		if !reasons[r.reason] {
			t.Errorf("no cell has the reason %q", r.reason)
		}
	}
}

// checkDecision compares a decision with the rules and returns the reason.
func checkDecision(t *testing.T, a quality.Attempt) string {
	t.Helper()
	passed := 0.0
	if a.ContractPassed {
		passed = 1.0
	}
	combined := (passed + a.Score) / 2.0
	for _, r := range rules {
		if !r.when(a, combined, a.Good-combined) {
			continue
		}
		want := quality.Decision{Retry: r.retry, Reason: r.reason, Degraded: r.degraded}
		if got := quality.ShouldRetry(a); got != want {
			t.Fatalf("%+v:\n got %+v\nwant %+v", a, got, want)
		}
		return r.reason
	}
	return ""
}

func TestShouldRetryAtTheBoundsOfItsRules(t *testing.T) {
	base := quality.Attempt{Number: 1, Max: 3, Good: 0.7, Low: 0.5, ContractPassed: true}
	for _, c := range []struct {
		name   string
		change func(a *quality.Attempt)
		reason string
	}{
		{"combined is good", func(a *quality.Attempt) { a.Score = 0.4 }, quality.ReasonSufficient},
		{"just below good", func(a *quality.Attempt) { a.Score = 0.39 }, quality.ReasonMarginal},
		{"a gap above 0.10", func(a *quality.Attempt) { a.Score = 0.19 }, quality.ReasonLow},
		{"a small gap without the contract", func(a *quality.Attempt) { a.Good, a.Score, a.ContractPassed = 0.5, 0.9, false }, quality.ReasonContract},
		{"a severe gap at first", func(a *quality.Attempt) { a.ContractPassed = false }, quality.ReasonContract},
		{"a severe gap again", func(a *quality.Attempt) { a.ContractPassed, a.Number = false, 2 }, quality.ReasonSevere},
		{"a gap of 0.40", func(a *quality.Attempt) { a.Good, a.ContractPassed, a.Number = 0.40, false, 2 }, quality.ReasonContract},
		{"an error", func(a *quality.Attempt) { a.ContractPassed, a.Error = false, true }, quality.ReasonError},
		{"the low score", func(a *quality.Attempt) { a.Good, a.Score = 1, 0.5 }, quality.ReasonSufficient},
		{"below the low score", func(a *quality.Attempt) { a.Good, a.Score = 1, 0.49 }, quality.ReasonLow},
		{"skipped at the last attempt", func(a *quality.Attempt) { a.Number, a.Fallback = 3, true }, quality.ReasonSkipped},
		{"a fallback without the contract", func(a *quality.Attempt) { a.Fallback, a.ContractPassed = true, false }, quality.ReasonContract},
	} {
		a := base
		c.change(&a)
		if got := quality.ShouldRetry(a); got.Reason != c.reason {
			t.Errorf("%s: %q, expected %q", c.name, got.Reason, c.reason)
		}
	}
}

func TestBestIsTheHighestAndTheLaterOfEquals(t *testing.T) {
	for _, c := range []struct {
		combined []float64
		best     uint32
	}{
		{nil, 0}, {[]float64{0}, 1}, {[]float64{0.5, 0.4}, 1}, {[]float64{0.5, 0.5}, 2}, {[]float64{0.1, 0.9, 0.9, 0.3}, 3},
	} {
		var attempts []*harnessv1.QualityAttempt
		for n, combined := range c.combined {
			attempts = append(attempts, &harnessv1.QualityAttempt{Number: uint32(n + 1), Combined: combined})
		}
		if got := quality.Best(attempts).GetNumber(); got != c.best {
			t.Errorf("%v: attempt %d, expected %d", c.combined, got, c.best)
		}
	}
}

func ExampleCombined() {
	fmt.Println(quality.Combined(true, 0.5), quality.Combined(false, 0.5))
	// Output: 0.75 0.25
}
