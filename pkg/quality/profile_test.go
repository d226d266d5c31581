package quality_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

func TestMaturityAndMultiplier(t *testing.T) {
	for _, c := range []struct {
		runs     uint64
		average  float64
		maturity string
		percent  uint32
	}{
		{0, 0, "new", 85}, {9, 1, "new", 85}, {10, 1, "developing", 100}, {49, 1, "developing", 100},
		{50, 0.75, "mature", 100}, {50, 0.76, "mature", 115}, {9000, 0.1, "mature", 100},
	} {
		p := &harnessv1.ProfileState{TotalRuns: c.runs, ScoredRuns: 4, ScoreSum: 4 * c.average}
		got := quality.ProfileOf(p)
		if got.GetMaturity() != c.maturity || quality.Multiplier(p) != c.percent || got.GetQualityMultiplier() != float64(c.percent)/100 ||
			got.GetAvgQuality() != c.average || got.GetTotalRuns() != c.runs {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if quality.Multiplier(nil) != 85 || quality.ProfileOf(nil).GetMaturity() != "new" {
		t.Error("no profile is not new")
	}
}

func TestProfileRatesAndCommonIssues(t *testing.T) {
	p := &harnessv1.ProfileState{TotalRuns: 8, Thumbs: 2, Issues: map[string]uint64{"other": 5, "accuracy": 3, "too_short": 3, "refusal": 3, "no_citations": 0, "unknown": 9}}
	got := quality.ProfileOf(p)
	if !slices.Equal(got.GetCommonIssues(), []string{"other", "too_short", "accuracy"}) || got.GetFeedbackRate() != 0.25 || got.GetAvgQuality() != 0 {
		t.Errorf("%v", got)
	}
}

func TestMilestoneWhenAThresholdIsCrossed(t *testing.T) {
	for _, c := range []struct {
		before, after uint64
		level         string
		threshold     uint64
	}{
		{8, 9, "", 0}, {9, 10, "developing", 10}, {10, 11, "", 0}, {48, 49, "", 0}, {49, 50, "mature", 50}, {50, 51, "", 0}, {9, 50, "mature", 50}, {10, 10, "", 0},
	} {
		got := quality.Milestone(c.before, c.after, &harnessv1.ProfileState{TotalRuns: c.after, ScoredRuns: 1, ScoreSum: 0.9})
		if got.GetLevel() != c.level || got.GetThreshold() != c.threshold || got != nil && (got.GetTotalRuns() != c.after || got.GetDescription() == "") {
			t.Errorf("%+v: %v", c, got)
		}
		if c.level == "mature" && got.GetQualityMultiplier() != 1.15 {
			t.Errorf("%v", got)
		}
	}
}

func TestIssueCategoriesOfWhatContractsAndVerifiersName(t *testing.T) {
	expected := &harnessv1.Expected{MinInsights: ptr[uint32](2), MinRecommendations: ptr[uint32](2), MinDocuments: ptr[uint32](2)}
	c := quality.Evaluate(quality.KindOf("synthesis", nil, 1), expected, 100, quality.Produced{})
	got := quality.IssueCategories(c, quality.Verdict{Issues: []string{"[usefulness] x", "[accuracy] y", "z"}}, true)
	want := []string{"too_short", "few_insights", "few_recommendations", "few_documents", "no_citations", "no_artifacts", "accuracy", "usefulness", "refusal", "other"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := quality.IssueCategories(&harnessv1.QualityContract{Issues: []string{"Insufficient bugs: 0"}}, quality.Verdict{}, false); !slices.Equal(got, []string{"other"}) {
		t.Errorf("%v", got)
	}
	if got := quality.IssueCategories(nil, quality.FallbackVerdict("x"), false); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

func TestAnswerFiguresOfRepetition(t *testing.T) {
	if f := quality.AnswerFigures("a b A, B a b"); f.GetWords() != 6 || f.GetDistinct() != 0.4 || math.Abs(f.GetBits()-0.970950594) > 1e-6 {
		t.Errorf("%v", f)
	}
	if f := quality.AnswerFigures("one"); f.GetWords() != 1 || f.GetDistinct() != 1 || f.GetBits() != 0 {
		t.Errorf("%v", f)
	}
	for _, c := range []struct {
		words      uint32
		distinct   float64
		repetitive bool
	}{{200, 0.29, true}, {199, 0.29, false}, {200, 0.3, false}} {
		if got := quality.Repetitive(&harnessv1.AnswerFigures{Words: c.words, Distinct: c.distinct}); got != c.repetitive {
			t.Errorf("%+v", c)
		}
	}
	if got := quality.Bits([]uint64{1, 1, 0, 1, 1}); got != 2 {
		t.Error(got)
	}
	if !quality.Repetitive(quality.AnswerFigures(strings.Repeat("on and ", 100))) {
		t.Error("one pair a hundred times is not repetitive")
	}
}

func TestQuotedFoldsCaseAndWhiteSpace(t *testing.T) {
	source := "  The Price\u00a0rose\n\tby ÄÖ 10 %.  "
	for quote, found := range map[string]bool{
		"price rose by äö 10 %": true, " THE\nprice ": true, "price  rose": true, "pricerose": false, "price fell": false, "": false, " \n": false,
	} {
		if quality.QuotedIn(quality.Fold(source), quote) != found {
			t.Errorf("%q", quote)
		}
	}
}

// TestFoldOfEachCharacter folds all forms of a letter to the same, once.
func TestFoldOfEachCharacter(t *testing.T) {
	for r := rune(0x21); r < 0x1F000; r++ {
		if r >= 0xD800 && r < 0xE000 {
			continue
		}
		folded := quality.Fold(string(r))
		if quality.Fold(folded) != folded {
			t.Errorf("%U folds twice", r)
		}
		if unicode.IsLetter(r) && quality.Fold(string(unicode.SimpleFold(r))) != folded {
			t.Errorf("%U differs from %U", r, unicode.SimpleFold(r))
		}
	}
}

func TestFoldTrims(t *testing.T) {
	if got := quality.Fold(" \n A  b\t"); got != "a b" {
		t.Errorf("%q", got)
	}
}
