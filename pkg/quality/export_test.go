package quality

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// HealingPrompt is HealingPromptWith the embedded text.
func HealingPrompt(goal string, attempt, limit uint32, contract *harnessv1.QualityContract, v Verdict) string {
	return HealingPromptWith(prompts[PromptHealing], goal, attempt, limit, contract, v)
}

// Preamble is PreambleWith the embedded text.
func Preamble(k Kind, c *harnessv1.QualityComplexity, multiplier uint32) string {
	return PreambleWith(prompts[PromptPreamble], k, c, multiplier)
}

// IssueCategories returns the categories of the faults of an attempt, each once, in their
// order. Refused is true if the monitor found a refusal.
func IssueCategories(c *harnessv1.QualityContract, v Verdict, refused bool) []string {
	found := map[string]bool{Refused: refused}
	for _, issue := range c.GetIssues() {
		found[category(issue, categories[:6])] = true
	}
	for _, issue := range v.Issues {
		found[category(issue, perspectives)] = true
	}
	return slices.DeleteFunc(slices.Clone(categories), func(c string) bool { return !found[c] })
}
