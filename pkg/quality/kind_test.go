package quality_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

func ptr[T any](v T) *T { return &v }

// artifactsOf returns numbers of artifacts of the three kinds, without citations.
func artifactsOf(insights, recommendations, documents int) []*harnessv1.Artifact {
	var all []*harnessv1.Artifact
	for n, kind := range []string{"insight", "recommendation", "document"} {
		for range []int{insights, recommendations, documents}[n] {
			all = append(all, &harnessv1.Artifact{Id: fmt.Sprintf("a%d", len(all)+1), Kind: kind})
		}
	}
	return all
}

// TestContractsAsPublished checks each row of the table: what just suffices passes, and one
// of anything less fails with one more issue.
func TestContractsAsPublished(t *testing.T) {
	for _, c := range []struct {
		kind                                 string
		sources                              int
		insights, recommendations, documents int
		citations, artifacts                 bool
		chars                                uint64
		checks                               int
	}{
		{"synthesis", 0, 1, 0, 0, true, true, 100, 4}, {"synthesis", 4, 4, 0, 0, true, true, 100, 4}, {"synthesis", 40, 10, 0, 0, true, true, 100, 4},
		{"recommendation", 9, 0, 1, 0, false, true, 100, 3}, {"drafting", 9, 0, 0, 1, false, true, 200, 3},
		{"full_pipeline", 3, 3, 1, 1, true, true, 200, 6}, {"chat", 9, 0, 0, 0, false, false, 50, 1}, {"other", 9, 0, 0, 0, false, false, 50, 1},
	} {
		k := quality.KindOf(c.kind, nil, c.sources)
		enough := quality.Produced{Chars: c.chars, Marked: c.citations, Artifacts: artifactsOf(c.insights, c.recommendations, c.documents)}
		got := quality.Evaluate(k, nil, 100, enough)
		if !got.GetPassed() || got.GetScore() != 1 || len(got.GetIssues()) > 0 ||
			!strings.HasPrefix(got.GetReasoning(), fmt.Sprintf("%d of %d checks passed", c.checks, c.checks)) {
			t.Errorf("%s: %v", c.kind, got)
		}
		lacks := func(p quality.Produced, issues ...string) {
			t.Helper()
			got := quality.Evaluate(k, nil, 100, p)
			want := float64(c.checks-len(issues)) / float64(c.checks)
			if got.GetPassed() || got.GetScore() != want || len(got.GetIssues()) != len(issues) {
				t.Errorf("%s: %v, expected %v", c.kind, got, issues)
				return
			}
			for n, issue := range issues {
				if !strings.HasPrefix(got.GetIssues()[n], issue) {
					t.Errorf("%s: %q, expected %q", c.kind, got.GetIssues()[n], issue)
				}
			}
		}
		short := enough
		short.Chars--
		lacks(short, fmt.Sprintf("Output too short: %d chars (minimum %d)", c.chars-1, c.chars))
		if c.citations {
			uncited := enough
			uncited.Marked = false
			lacks(uncited, "Citations required but none found")
		}
		if c.insights > 1 {
			lacks(quality.Produced{Chars: c.chars, Marked: true, Artifacts: artifactsOf(c.insights-1, c.recommendations, c.documents)},
				fmt.Sprintf("Insufficient insights: %d created (minimum %d)", c.insights-1, c.insights))
		}
		if c.kind == "recommendation" {
			lacks(quality.Produced{Chars: c.chars}, "Insufficient recommendations: 0 created (minimum 1)", "No artifacts created")
		}
		if c.kind == "drafting" {
			lacks(quality.Produced{Chars: c.chars}, "Insufficient documents: 0 created (minimum 1)", "No artifacts created")
		}
	}
}

func TestContractTakesQuotesAsCitations(t *testing.T) {
	k := quality.KindOf("synthesis", nil, 0)
	for quote, passed := range map[string]bool{"words": true, " \n": false, "": false} {
		a := &harnessv1.Artifact{Kind: "insight", Citations: []*harnessv1.Citation{{Source: "s", Quote: quote}}}
		if got := quality.Evaluate(k, nil, 100, quality.Produced{Chars: 100, Artifacts: []*harnessv1.Artifact{a}}); got.GetPassed() != passed {
			t.Errorf("%q: %v", quote, got)
		}
	}
}

func TestContractReplacesAndScales(t *testing.T) {
	for _, c := range []struct {
		name            string
		kind            string
		sources         int
		expected        *harnessv1.Expected
		multiplier      uint32
		insights, chars int // just enough
	}{
		{"mature", "synthesis", 7, nil, 115, 8, 115},
		{"new", "synthesis", 7, nil, 85, 5, 85},
		{"one stays", "synthesis", 1, nil, 85, 1, 85},
		{"fifty characters stay", "chat", 0, nil, 85, 0, 50},
		{"unset", "synthesis", 2, nil, 0, 2, 100},
		{"replaced, then scaled", "synthesis", 7, &harnessv1.Expected{MinInsights: ptr[uint32](20), MinOutputChars: ptr[uint32](333)}, 115, 16, 382},
		{"zero is no opinion", "synthesis", 7, &harnessv1.Expected{MinInsights: ptr[uint32](0), MinOutputChars: ptr[uint32](0)}, 115, 8, 115},
		{"twice the row", "synthesis", 10, &harnessv1.Expected{MinInsights: ptr[uint32](50)}, 100, 20, 100},
		{"five of any work", "synthesis", 1, &harnessv1.Expected{MinInsights: ptr[uint32](6)}, 100, 5, 100},
		{"less than the row", "synthesis", 9, &harnessv1.Expected{MinInsights: ptr[uint32](2)}, 100, 2, 100},
		{"the most characters", "chat", 0, &harnessv1.Expected{MinOutputChars: ptr[uint32](60_000)}, 100, 0, 5000},
	} {
		k := quality.KindOf(c.kind, nil, c.sources)
		enough := func(insights, chars int) bool {
			return quality.Evaluate(k, c.expected, c.multiplier, quality.Produced{Chars: uint64(chars), Marked: true, Artifacts: artifactsOf(insights, 1, 1)}).GetPassed()
		}
		if !enough(c.insights, c.chars) || enough(c.insights, c.chars-1) || c.insights > 0 && enough(c.insights-1, c.chars) {
			t.Errorf("%s: %d insights, %d characters are not the bounds", c.name, c.insights, c.chars)
		}
	}
	quoteless := quality.Evaluate(quality.KindOf("synthesis", nil, 1), &harnessv1.Expected{RequireCitations: ptr(false)}, 100,
		quality.Produced{Chars: 100, Artifacts: artifactsOf(1, 0, 0)})
	added := quality.Evaluate(quality.KindOf("chat", nil, 0), &harnessv1.Expected{MinRecommendations: ptr[uint32](2), MinDocuments: ptr[uint32](1)}, 115,
		quality.Produced{Chars: 100, Artifacts: artifactsOf(0, 1, 0)})
	if quoteless.GetPassed() || len(quoteless.GetIssues()) != 1 || // false is no opinion
		len(added.GetIssues()) != 2 || added.GetArtifactCounts()["recommendation"] != 1 {
		t.Errorf("%v\n%v", quoteless, added)
	}
}

func TestOwnKindsHaveTheirDefaults(t *testing.T) {
	own := []*harnessv1.WorkKind{
		{Name: "triage"}, {Name: "chat", MaxAttempts: ptr[uint32](9)}, {Name: "bugs", ArtifactKinds: []string{"bug"}, MaxAttempts: ptr[uint32](7), GoodEnoughScore: 0.4, MinOutputChars: 90,
			Counts: []*harnessv1.ArtifactCount{{Kind: "bug", Count: 2}}},
	}
	cfg := &harnessv1.QualityConfig{Retry: &harnessv1.QualityRetryConfig{
		MaxAttemptsSynthesis: ptr[uint32](5), MaxAttemptsChat: ptr[uint32](6), MaxAttemptsDefault: ptr[uint32](4), GoodEnoughScore: ptr(0.3), LowQualityThreshold: ptr(0.2),
	}}
	for _, c := range []struct {
		kind      string
		cfg       *harnessv1.QualityConfig
		attempts  uint32
		good, low float64
	}{
		{"triage", nil, 3, 0.65, 0.5}, {"triage", cfg, 4, 0.65, 0.5}, {"bugs", cfg, 7, 0.4, 0.4}, {"drafting", cfg, 4, 0.65, 0.5},
		{"synthesis", cfg, 5, 0.3, 0.2}, {"full_pipeline", cfg, 5, 0.3, 0.2}, {"chat", cfg, 6, 0.6, 0.4},
	} {
		if attempts, good, low := quality.Limits(quality.KindOf(c.kind, own, 0), c.cfg); attempts != c.attempts || good != c.good || low != c.low {
			t.Errorf("%s: %d, %v, %v", c.kind, attempts, good, low)
		}
	}
	triage, bugs := quality.KindOf("triage", own, 0), quality.KindOf("bugs", own, 0)
	if triage.BuiltIn || !slices.Equal(quality.ArtifactKinds(triage), []string{"insight", "recommendation", "document"}) ||
		!slices.Equal(quality.ArtifactKinds(bugs), []string{"bug"}) {
		t.Errorf("%v\n%v", triage, bugs)
	}
	if got := quality.Evaluate(triage, nil, 100, quality.Produced{}); !got.GetPassed() || got.GetScore() != 1 {
		t.Errorf("a kind that requires nothing: %v", got)
	}
	expected := &harnessv1.Expected{MinInsights: ptr[uint32](3)}
	got := quality.Evaluate(bugs, expected, 100, quality.Produced{Chars: 90, Artifacts: []*harnessv1.Artifact{{Kind: "bug"}}})
	if !slices.Equal(got.GetIssues(), []string{"Insufficient bugs: 1 created (minimum 2)"}) {
		t.Errorf("%v", got)
	}
	if quality.KindOf("chat", own, 0).GetMaxAttempts() != 2 ||
		!slices.Equal(quality.Names(own[:1]), []string{"chat", "synthesis", "recommendation", "drafting", "full_pipeline", "triage"}) {
		t.Error("an own kind replaces a built-in one")
	}
}

func TestCheckKindNamesWhatIsWrong(t *testing.T) {
	for named, change := range map[string]func(k *harnessv1.WorkKind){
		"":                           func(*harnessv1.WorkKind) {},
		"name \"Triage\"":            func(k *harnessv1.WorkKind) { k.Name = "Triage" },
		"name \"\"":                  func(k *harnessv1.WorkKind) { k.Name = "" },
		"name \"a\\n\"":              func(k *harnessv1.WorkKind) { k.Name = "a\n" },
		"built-in":                   func(k *harnessv1.WorkKind) { k.Name = "drafting" },
		"name \"aaaaaaaaaaaaaaaa":    func(k *harnessv1.WorkKind) { k.Name = strings.Repeat("a", 33) },
		"max_attempts 11":            func(k *harnessv1.WorkKind) { k.MaxAttempts = ptr[uint32](11) },
		"max_attempts 0":             func(k *harnessv1.WorkKind) { k.MaxAttempts = ptr[uint32](0) },
		"good_enough_score 1.01":     func(k *harnessv1.WorkKind) { k.GoodEnoughScore = 1.01 },
		"good_enough_score NaN":      func(k *harnessv1.WorkKind) { k.GoodEnoughScore = math.NaN() },
		"good_enough_score -0.1":     func(k *harnessv1.WorkKind) { k.GoodEnoughScore = -0.1 },
		"low_quality_threshold 0.66": func(k *harnessv1.WorkKind) { k.LowQualityThreshold = 0.66 },
		"low_quality_threshold NaN":  func(k *harnessv1.WorkKind) { k.LowQualityThreshold = math.NaN() },
		"low_quality_threshold 0.3":  func(k *harnessv1.WorkKind) { k.GoodEnoughScore, k.LowQualityThreshold = 0.2, 0.3 },
		"unknown perspective":        func(k *harnessv1.WorkKind) { k.Perspectives = []string{"style"} },
		"4 perspectives exceed 3": func(k *harnessv1.WorkKind) {
			k.Perspectives = []string{"accuracy", "completeness", "usefulness", "style"}
			k.Prompts = map[string]string{"verifier_style": "x"}
		},
		"perspective \"a b\": expected":        func(k *harnessv1.WorkKind) { k.Perspectives = []string{"a b"} },
		"perspective \"system\": expected":     func(k *harnessv1.WorkKind) { k.Perspectives = []string{"system"} },
		"unknown prompt \"intent_classifier\"": func(k *harnessv1.WorkKind) { k.Prompts = map[string]string{"intent_classifier": "x"} },
		"unknown prompt \"verifier_accuracy\"": func(k *harnessv1.WorkKind) { k.Prompts = map[string]string{"verifier_accuracy": "x"} },
		"healing has 1 bytes":                  func(k *harnessv1.WorkKind) { k.Prompts = map[string]string{"healing": " "} },
		"healing has 4097 bytes":               func(k *harnessv1.WorkKind) { k.Prompts = map[string]string{"healing": strings.Repeat("h", 4097)} },
		"duplicate perspective":                func(k *harnessv1.WorkKind) { k.Perspectives = []string{"accuracy", "accuracy"} },
		"unknown score":                        func(k *harnessv1.WorkKind) { k.Score = "nps" },
		"description exceeds":                  func(k *harnessv1.WorkKind) { k.Description = strings.Repeat("d", 301) },
		"preamble exceeds":                     func(k *harnessv1.WorkKind) { k.Preamble = strings.Repeat("d", 2001) },
		"min_output_chars 100001":              func(k *harnessv1.WorkKind) { k.MinOutputChars = 100_001 },
		"artifact kind \"A\"":                  func(k *harnessv1.WorkKind) { k.ArtifactKinds = []string{"A"} },
		"duplicate artifact kind":              func(k *harnessv1.WorkKind) { k.ArtifactKinds = []string{"a", "a"} },
		"unknown count of \"bug\"":             func(k *harnessv1.WorkKind) { k.Counts = []*harnessv1.ArtifactCount{{Kind: "bug", Count: 1}} },
		"201 exceeds":                          func(k *harnessv1.WorkKind) { k.Counts = []*harnessv1.ArtifactCount{{Kind: "insight", Count: 201}} },
	} {
		k := &harnessv1.WorkKind{Name: "triage_2", MaxAttempts: ptr[uint32](10), GoodEnoughScore: 0, LowQualityThreshold: 0.65, Perspectives: []string{"usefulness"}, Score: "doc_qs"}
		change(k)
		err := quality.CheckKind(k)
		if (err == nil) != (named == "") || err != nil && !strings.Contains(err.Error(), named) {
			t.Errorf("%q: %v", named, err)
		}
	}
}

func TestPreambleNamesWhatTheContractChecks(t *testing.T) {
	c := &harnessv1.QualityComplexity{Expected: &harnessv1.Expected{MinInsights: ptr[uint32](10)}}
	got := quality.Preamble(quality.KindOf("full_pipeline", nil, 3), c, 115)
	for _, part := range []string{"6 of kind insight", "1 of kind recommendation", "1 of kind document", "quote", "230 characters"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in %s", part, got)
		}
	}
	own := []*harnessv1.WorkKind{{Name: "free"}, {Name: "told", Preamble: "Be brave."}}
	if got := quality.Preamble(quality.KindOf("free", own, 0), nil, 100); got != "" {
		t.Errorf("%s", got)
	}
	if got := quality.PreambleWith("HEAD", quality.KindOf("told", own, 0), nil, 100); got != "HEAD\nBe brave." {
		t.Errorf("%s", got)
	}
}

func TestLowScoreIsAtMostTheGoodOne(t *testing.T) {
	if k := quality.KindOf("own", []*harnessv1.WorkKind{{Name: "own", GoodEnoughScore: 0.3}}, 0); k.GetLowQualityThreshold() != 0.3 {
		t.Errorf("%v", k)
	}
	cfg := &harnessv1.QualityConfig{Retry: &harnessv1.QualityRetryConfig{GoodEnoughScore: ptr(0.3)}}
	if _, good, low := quality.Limits(quality.KindOf("synthesis", nil, 0), cfg); good != 0.3 || low != 0.3 {
		t.Errorf("%v, %v", good, low)
	}
}
