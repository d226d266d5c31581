package render

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// fallbackMark begins why a judge did not answer.
const fallbackMark = "[is_fallback] "

// withoutMark returns why a judge did not answer; empty if it did.
func withoutMark(reason string) string { return Clean(strings.TrimPrefix(reason, fallbackMark)) }

func passes(n uint32) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}

// qualityLines returns the lines of what judging the work has found; none for other events.
func (s Style) qualityLines(e *harnessv1.Event) []string {
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_QualityComplexity:
		c := v.QualityComplexity
		line := "work: " + Clean(strings.ReplaceAll(c.GetWorkflowType(), "_", " ")) + ", " + strings.ToLower(Clean(c.GetLevel()))
		if why := withoutMark(c.GetKindReason()); why != "" {
			line += "; the kind is not known: " + why
		}
		return []string{line}
	case *harnessv1.Event_QualityPlanSelected:
		p := v.QualityPlanSelected
		if why := withoutMark(p.GetReason()); why != "" {
			return []string{fmt.Sprintf("plan: %s (no model made one: %s)", Clean(p.GetPlan()), why)}
		}
		return []string{fmt.Sprintf("plan: %s (best of %d)", Clean(p.GetPlan()), p.GetCandidatesCount())}
	case *harnessv1.Event_QualityVerified:
		q := v.QualityVerified
		if strings.HasPrefix(q.GetFeedback(), fallbackMark) {
			return []string{"quality: not verified: " + withoutMark(q.GetFeedback())}
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
	case *harnessv1.Event_QualityIterated:
		q := v.QualityIterated
		return []string{fmt.Sprintf("%s, %d accepted: the best has %.2f of 1", passes(q.GetIterations()), q.GetAcceptedCount(), q.GetBestScore())}
	case *harnessv1.Event_QualityMilestone:
		return []string{Clean(v.QualityMilestone.GetDescription())}
	}
	return nil
}
