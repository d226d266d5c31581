package quality

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// HealingPromptWith returns the prompt of another attempt: the whole goal, the number of the new
// attempt, its mistakes, one line each, and the answer of the verifier. A
// fallback adds no feedback. text is that of the prompt healing, which ends it.
func HealingPromptWith(text, goal string, attempt, limit uint32, contract *harnessv1.QualityContract, v Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nAttempt %d of %d. The response before it is not good enough yet. Correct this:\n", goal, attempt, limit)
	for _, issue := range contract.GetIssues() {
		fmt.Fprintf(&b, "Missing: %s\n", content.OneLine(issue))
	}
	if !v.Fallback {
		for _, issue := range v.Issues {
			if strings.HasPrefix(issue, Fallback) {
				continue // no verifier has found it
			}
			fmt.Fprintf(&b, "Quality: %s\n", content.OneLine(issue))
		}
		if v.Feedback != "" {
			fmt.Fprintf(&b, "Feedback of the reviewer: %s\n", content.OneLine(v.Feedback))
		}
	}
	return b.String() + text
}
