package quality

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	maxIssues   = 10   // of a verdict
	maxIssue    = 500  // bytes
	maxFeedback = 1000 // code points
	maxWhy      = 500  // bytes
)

var (
	errNoScore  = errors.New("expected a JSON object with a score from 0 to 1")
	errVerdicts = errors.New("expected one score, found several that differ")
)

// Verdict is what verifiers answer about an attempt.
type Verdict struct {
	Passed      bool
	Score       float64  // 0 to 1
	Issues      []string // at most 10 a verifier, each one line of at most 500 bytes
	Feedback    string   // at most 1,000 code points a verifier
	Fallback    bool     // no verifier answered
	Reasoning   string   // which verifiers were sent the work and what each returned, one line
	Contrastive bool     // several verifiers, each for one perspective
}

// ParseVerdict reads a model's answer to VerifyJob: a JSON object, with or without text
// around it. It returns an error unless the score is a number from 0 to 1. Objects with
// scores that differ are an error too, because one of them may be quoted from the work.
func ParseVerdict(text string) (Verdict, error) {
	var v Verdict
	found := objects(text, "score")
	for n, o := range found {
		score, ok := o.number("score")
		switch {
		case !ok || !(score >= 0 && score <= 1):
			return Verdict{}, errNoScore
		case n > 0 && score != v.Score:
			return Verdict{}, errVerdicts
		}
		v = Verdict{Score: max(score, 0), Issues: genuineIssues(o.strings("issues", maxIssues, maxIssue)), Feedback: first(genuine(o.text("feedback")), maxFeedback)}
		v.Passed, _ = o.flag("passed")
	}
	if len(found) == 0 {
		return Verdict{}, errNoScore
	}
	v.Reasoning = "verifier " + outcome(v)
	return v, nil
}

// genuineIssues returns a model's issues without the mark of a fallback.
func genuineIssues(issues []string) []string {
	for n, issue := range issues {
		issues[n] = genuine(issue)
	}
	return slices.DeleteFunc(issues, func(issue string) bool { return issue == "" })
}

// FallbackVerdict returns the verdict of a verifier that did not answer.
func FallbackVerdict(why string) Verdict {
	why = content.Line(why, maxWhy)
	return Verdict{Feedback: Fallback + why, Fallback: true, Reasoning: "verifier without an answer: " + why}
}

// Combine returns the verdict of verifiers that judged for one perspective each; the slices
// are parallel. The least score counts, all must have passed, and each issue names its
// perspective. A verifier that failed is left out of the score and named among the issues, after
// Fallback; if all did, it returns the fallback. The
// verdict of a single verifier for everything, perspective "", stays unchanged.
func Combine(perspectives []string, verdicts []Verdict, errs []error) Verdict {
	combined := Verdict{Passed: true, Score: 1, Contrastive: len(perspectives) > 1}
	var answered int
	var feedback, reasons, failures []string
	for n, perspective := range perspectives {
		name, tag := perspective, "["+perspective+"] "
		if perspective == "" {
			name, tag = "verifier", ""
		}
		if why, failed := failure(n, verdicts, errs); failed {
			failures = append(failures, strings.TrimSuffix(tag+why, " "))
			combined.Issues = append(combined.Issues, Fallback+name)
			reasons = append(reasons, name+" without an answer")
			continue
		}
		v := verdicts[n]
		answered++
		combined.Passed, combined.Score = combined.Passed && v.Passed, min(combined.Score, v.Score)
		for _, issue := range v.Issues {
			combined.Issues = append(combined.Issues, tag+issue)
		}
		if v.Feedback != "" {
			feedback = append(feedback, tag+v.Feedback)
		}
		reasons = append(reasons, name+" "+outcome(v))
	}
	if answered == 0 {
		if len(failures) == 0 {
			failures = []string{"no verifier"}
		}
		v := FallbackVerdict(strings.Join(failures, "; "))
		v.Contrastive = combined.Contrastive
		return v
	}
	combined.Feedback, combined.Reasoning = strings.Join(feedback, "\n"), strings.Join(reasons, ", ")
	return combined
}

// failure returns why a verifier has no verdict, and whether it has none.
func failure(n int, verdicts []Verdict, errs []error) (string, bool) {
	switch {
	case n < len(errs) && errs[n] != nil:
		return content.Line(errs[n].Error(), maxWhy/3), true
	case n >= len(verdicts):
		return "no verdict", true
	case verdicts[n].Fallback:
		return content.Line(genuine(verdicts[n].Feedback), maxWhy/3), true
	}
	return "", false
}

func outcome(v Verdict) string {
	if v.Passed {
		return fmt.Sprintf("%.2f passed", v.Score)
	}
	return fmt.Sprintf("%.2f failed", v.Score)
}

// ArtifactSummary returns the numbers of artifacts by kind, such as "3 insights, 1 document",
// or "no artifacts".
func ArtifactSummary(saved []*harnessv1.Artifact) string {
	kinds, counts := slices.Clone(artifacts), map[string]int{}
	for _, a := range saved {
		if !slices.Contains(kinds, a.GetKind()) {
			kinds = append(kinds, a.GetKind())
		}
		counts[a.GetKind()]++
	}
	var parts []string
	for _, kind := range kinds {
		switch n := counts[kind]; {
		case n == 1:
			parts = append(parts, "1 "+strings.ReplaceAll(kind, "_", " "))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(kind)))
		}
	}
	if len(parts) == 0 {
		return "no artifacts"
	}
	return strings.Join(parts, ", ")
}
