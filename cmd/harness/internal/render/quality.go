package render

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// qualityLines returns the lines of what judging the work has found; none for other events.
func (s Style) qualityLines(e *harnessv1.Event) []string {
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_QualityComplexity:
		c := v.QualityComplexity
		return []string{"work: " + Clean(strings.ReplaceAll(c.GetWorkflowType(), "_", " ")) + ", " + strings.ToLower(Clean(c.GetLevel()))}
	case *harnessv1.Event_QualityPlanSelected:
		return []string{fmt.Sprintf("plan: %s (best of %d)", Clean(v.QualityPlanSelected.GetPlan()), v.QualityPlanSelected.GetCandidatesCount())}
	case *harnessv1.Event_QualityVerified:
		q := v.QualityVerified
		if strings.HasPrefix(q.GetFeedback(), "[is_fallback]") {
			return []string{"quality: not verified: " + Clean(strings.TrimPrefix(q.GetFeedback(), "[is_fallback] "))}
		}
		return []string{fmt.Sprintf("quality: %.2f of 1 from the verifier", q.GetScore())}
	case *harnessv1.Event_QualityScored:
		q := v.QualityScored
		kind := strings.ToUpper(Clean(strings.ReplaceAll(q.GetType(), "_", " ")))
		return []string{fmt.Sprintf("score: %s %d, %s (%s)", kind, q.GetScore(), Clean(q.GetGrade()), Clean(q.GetLabel()))}
	case *harnessv1.Event_QualityRetry:
		return []string{fmt.Sprintf("attempt %d: %s", v.QualityRetry.GetAttempt(), Clean(v.QualityRetry.GetReason()))}
	case *harnessv1.Event_QualityDegraded:
		return []string{s.bad(fmt.Sprintf("no attempt of %d was good enough: the best is delivered", v.QualityDegraded.GetAttemptsMade()))}
	case *harnessv1.Event_QualityMilestone:
		return []string{Clean(v.QualityMilestone.GetDescription())}
	}
	return nil
}
