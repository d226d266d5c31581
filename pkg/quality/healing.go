package quality

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// HealingPrompt returns the prompt of another attempt: the whole goal, the number of the new
// attempt, what was missing and wrong, one line each, and what the verifier answered. A
// fallback adds no feedback.
func HealingPrompt(goal string, attempt, max uint32, contract *harnessv1.QualityContract, v Verdict) string {
	return HealingPromptWith(prompts[PromptHealing], goal, attempt, max, contract, v)
}

// HealingPromptWith is HealingPrompt with another text for the prompt healing, which ends it.
func HealingPromptWith(text, goal string, attempt, max uint32, contract *harnessv1.QualityContract, v Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n[SELF-CORRECTION: Attempt %d of %d]\nThe previous response is not good enough yet. Correct this:\n", goal, attempt, max)
	for _, issue := range contract.GetIssues() {
		fmt.Fprintf(&b, "MISSING REQUIREMENT: %s\n", content.OneLine(issue))
	}
	if !v.Fallback {
		for _, issue := range v.Issues {
			fmt.Fprintf(&b, "QUALITY ISSUE: %s\n", content.OneLine(issue))
		}
		if v.Feedback != "" {
			fmt.Fprintf(&b, "Reviewer feedback: %s\n", content.OneLine(v.Feedback))
		}
	}
	return b.String() + text
}
