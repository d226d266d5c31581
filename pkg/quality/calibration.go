package quality

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxExamples bounds the verdicts that a verifier is calibrated with.
const maxExamples = 3

// Calibration returns the newest verdicts that users did not share, at most three, as VerifyJob
// takes them; empty without any. The newest are the last.
func Calibration(mismatches []*harnessv1.Mismatch) string {
	var b strings.Builder
	for _, m := range mismatches[max(len(mismatches)-maxExamples, 0):] {
		thumb := "up"
		if m.GetThumb() == harnessv1.Thumb_THUMB_DOWN {
			thumb = "down"
		}
		fmt.Fprintf(&b, "Goal: %s\nOutput: %s\nScore: %.2f, user: %s\n", content.OneLine(m.GetQuery()), content.OneLine(m.GetAnswer()), m.GetScore(), thumb)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
