package quality

import (
	"fmt"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Maturities of a profile.
const (
	New        = "new"
	Developing = "developing"
	Mature     = "mature"
)

const (
	developingFrom = 10 // runs
	matureFrom     = 50 // runs
	goodProfile    = 0.75
	commonIssues   = 3
)

// Percents by which a profile scales requirements.
const (
	percentNew    = 85
	percentNormal = 100
	percentGood   = 115
)

// Categories of issues.
const (
	TooShort           = "too_short"
	FewInsights        = "few_insights"
	FewRecommendations = "few_recommendations"
	FewDocuments       = "few_documents"
	NoCitations        = "no_citations"
	NoArtifacts        = "no_artifacts"
	Refused            = "refusal"
	Other              = "other"
)

// categories are all categories, in the order that decides between equals.
var categories = []string{
	TooShort, FewInsights, FewRecommendations, FewDocuments, NoCitations, NoArtifacts, Accuracy, Completeness, Usefulness, Refused, Other,
}

// beginnings are how the issues of each category begin.
var beginnings = map[string]string{
	TooShort: issueShort, FewInsights: issueInsights, FewRecommendations: issueRecommendations, FewDocuments: issueDocuments,
	NoCitations: issueCitations, NoArtifacts: issueArtifacts,
	Accuracy: "[" + Accuracy + "] ", Completeness: "[" + Completeness + "] ", Usefulness: "[" + Usefulness + "] ",
}

// ProfileOf returns what a profile reports.
func ProfileOf(p *harnessv1.ProfileState) *harnessv1.QualityProfile {
	profile := &harnessv1.QualityProfile{
		Maturity: maturity(p.GetTotalRuns()), TotalRuns: p.GetTotalRuns(), AvgQuality: average(p), QualityMultiplier: factor(p),
	}
	if p.GetTotalRuns() > 0 {
		profile.FeedbackRate = min(1, float64(p.GetThumbs())/float64(p.GetTotalRuns()))
	}
	common := slices.DeleteFunc(slices.Clone(categories), func(c string) bool { return p.GetIssues()[c] == 0 })
	slices.SortStableFunc(common, func(a, b string) int {
		switch n, m := p.GetIssues()[a], p.GetIssues()[b]; {
		case n > m:
			return -1
		case n < m:
			return 1
		}
		return 0
	})
	profile.CommonIssues = common[:min(len(common), commonIssues)]
	return profile
}

// average returns the mean of the verifier's scores, 0 to 1; 0 without any.
func average(p *harnessv1.ProfileState) float64 {
	if p.GetScoredRuns() == 0 {
		return 0
	}
	return min(max(p.GetScoreSum()/float64(p.GetScoredRuns()), 0), 1)
}

func maturity(runs uint64) string {
	switch {
	case runs >= matureFrom:
		return Mature
	case runs >= developingFrom:
		return Developing
	}
	return New
}

// Multiplier returns the percent by which a profile scales requirements: 85 for a new
// one, 115 for a mature one whose mean score is above 0.75, else 100.
func Multiplier(p *harnessv1.ProfileState) uint32 {
	switch maturity(p.GetTotalRuns()) {
	case New:
		return percentNew
	case Mature:
		if average(p) > goodProfile {
			return percentGood
		}
	}
	return percentNormal
}

func factor(p *harnessv1.ProfileState) float64 { return float64(Multiplier(p)) / 100 }

// Milestone returns the maturity that a profile has reached by growing from one number of
// runs to another, or nil if it has the maturity that it had. P is the profile after.
func Milestone(before, after uint64, p *harnessv1.ProfileState) *harnessv1.QualityMilestone {
	m := &harnessv1.QualityMilestone{TotalRuns: after, QualityMultiplier: factor(p)}
	switch {
	case before < matureFrom && after >= matureFrom:
		m.Level, m.Threshold = Mature, matureFrom
	case before < developingFrom && after >= developingFrom:
		m.Level, m.Threshold = Developing, developingFrom
	default:
		return nil
	}
	m.Description = fmt.Sprintf("The profile is %s after %d runs: what is required is scaled by %.2f.", m.Level, m.Threshold, m.QualityMultiplier)
	return m
}

// CategoriesOf returns the categories of all issues of an attempt, each once, in their order.
// Refused is true if the monitor found a refusal.
func CategoriesOf(issues []string, refused bool) []string {
	found := map[string]bool{Refused: refused}
	for _, issue := range issues {
		if strings.HasPrefix(issue, Fallback) {
			continue // a verifier that did not answer is no fault of the work
		}
		found[category(issue, categories[:9])] = true
	}
	return slices.DeleteFunc(slices.Clone(categories), func(c string) bool { return !found[c] })
}

// category returns the category that an issue belongs to, one of names or Other.
func category(issue string, names []string) string {
	for _, name := range names {
		if strings.HasPrefix(issue, beginnings[name]) {
			return name
		}
	}
	return Other
}
