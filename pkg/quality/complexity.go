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
	complexSources = 5    // sources from which work is complex, whatever a model answers
	complexChars   = 1200 // code points of the goal from which work is complex without a model
	simpleChars    = 120  // code points of the goal up to which work without sources is simple
	sureOfKind     = 0.5  // confidence from which the kind of an answer counts
	maxReason      = 1000 // bytes
)

// errKind is the error of an answer that names no kind.
var errKind = errors.New("expected a JSON object with a kind and a confidence from 0 to 1")

// errLevel is the error of an answer that names none of the levels.
var errLevel = errors.New("expected a JSON object with level SIMPLE, MEDIUM or COMPLEX")

// ParseComplexity reads a model's answer to ClassifyJob: a JSON object, with or without text
// around it. Figures outside of their range become the nearest in it; work with at least 5
// sources is COMPLEX. It returns an error if no object names one of the three levels.
func ParseComplexity(text string, sources int) (*harnessv1.QualityComplexity, error) {
	for _, o := range objects(text, "level") {
		level := strings.ToUpper(o.text("level"))
		if level != Simple && level != Medium && level != Complex {
			continue
		}
		if sources >= complexSources {
			level = Complex
		}
		c := &harnessv1.QualityComplexity{
			Level: level, Reason: content.Line(genuine(o.text("reason")), maxReason), SubtaskCount: 1,
			Expected: expectation(object(o["expected"])),
		}
		if n := o.figure("subtask_count", 1, 10); n != nil {
			c.SubtaskCount = *n
		}
		return c, nil
	}
	return nil, errLevel
}

// expectation returns what an answer expects, or nil if it expects nothing. Zero and false are no
// expectation: a small model fills in every field of the schema.
func expectation(o fields) *harnessv1.Expected {
	e := &harnessv1.Expected{
		MinInsights:        opinion(o.figure("min_insights", 0, 20)),
		MinRecommendations: opinion(o.figure("min_recommendations", 0, 10)),
		MinDocuments:       opinion(o.figure("min_documents", 0, 5)),
		MinOutputChars:     opinion(o.figure("min_output_chars", 0, maxExpectedChars)),
	}
	if required, _ := o.flag("require_citations"); required {
		e.RequireCitations = &required
	}
	if e.MinInsights == nil && e.MinRecommendations == nil && e.MinDocuments == nil && e.MinOutputChars == nil && e.RequireCitations == nil {
		return nil
	}
	return e
}

// opinion returns an expectation, or nil if it is zero and so none.
func opinion[T comparable](expected *T) *T {
	if expected == nil || *expected == *new(T) {
		return nil
	}
	return expected
}

// FallbackComplexity classifies work without a model: at least 5 sources or 1,200 code
// points are COMPLEX, at most 120 code points without a source SIMPLE, others MEDIUM.
func FallbackComplexity(goal string, sources int, why string) *harnessv1.QualityComplexity {
	c := &harnessv1.QualityComplexity{Level: Medium, Reason: FallbackReason(why), SubtaskCount: 1}
	switch length := chars(goal); {
	case sources >= complexSources || length >= complexChars:
		c.Level = Complex
	case length <= simpleChars && sources == 0:
		c.Level = Simple
	}
	return c
}

// FallbackReason returns why a fallback counts, as events report it.
func FallbackReason(why string) string { return Fallback + content.Line(why, maxReason) }

// ParseIntent reads a model's answer to IntentJob and returns the kind of the work, one of
// known, and how sure the model is, 0.5 to 1. An answer that cannot be read, names another
// kind or is less sure gives Chat and 0, and an error with the reason.
func ParseIntent(text string, known []string) (kind string, confidence float64, err error) {
	found := objects(text, "kind")
	if len(found) == 0 {
		return Chat, 0, errKind
	}
	kind = strings.ToLower(found[0].text("kind"))
	confidence, ok := found[0].number("confidence")
	switch {
	case !slices.Contains(known, kind):
		return Chat, 0, fmt.Errorf("unknown kind %q", content.Clip(kind, maxSuggested))
	case !ok || !(confidence >= 0 && confidence <= 1): // NaN too
		return Chat, 0, errKind
	case confidence < sureOfKind:
		return Chat, 0, fmt.Errorf("confidence %.2f that the kind is %s is below %.1f", confidence, kind, sureOfKind)
	}
	return kind, confidence, nil
}
