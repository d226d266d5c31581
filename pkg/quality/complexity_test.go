package quality_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

func TestParseComplexityReadsWhatModelsAnswer(t *testing.T) {
	for _, c := range []struct {
		name, text string
		sources    int
		level      string // "" is an error
		subtasks   uint32
	}{
		{"plain", `{"level":"MEDIUM","reason":"r","subtask_count":3}`, 0, "MEDIUM", 3},
		{"in a fence", "Here:\n```json\n{\"level\": \"simple\"}\n```\nDone {x}", 0, "SIMPLE", 1},
		{"after braces", `a {b} c {"level":"COMPLEX","subtask_count":99}`, 0, "COMPLEX", 10},
		{"after another object", `{"a":1}{"level":"other"}{"level":"MEDIUM","subtask_count":-3}`, 0, "MEDIUM", 1},
		{"a figure in words", `{"level":"MEDIUM","subtask_count":"four"}`, 0, "MEDIUM", 1},
		{"a huge figure", `{"level":"MEDIUM","subtask_count":1e999}`, 0, "MEDIUM", 10},
		{"four sources", `{"level":"SIMPLE"}`, 4, "SIMPLE", 1},
		{"five sources", `{"level":"SIMPLE"}`, 5, "COMPLEX", 1},
		{"no level", `{"reason":"r"}`, 9, "", 0},
		{"another level", `{"level":"HUGE"}`, 0, "", 0},
		{"a number as level", `{"level":2}`, 0, "", 0},
		{"nothing", ``, 0, "", 0},
		{"cut", `{"level":"MED`, 0, "", 0},
	} {
		got, err := quality.ParseComplexity(c.text, c.sources)
		if (err != nil) != (c.level == "") || got.GetLevel() != c.level || got.GetSubtaskCount() != c.subtasks {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func TestParseComplexityClampsWhatIsExpected(t *testing.T) {
	got, err := quality.ParseComplexity(`{"level":"MEDIUM","reason":"[is_fallback] [is_fallback] x","expected":{"min_insights":21,
		"min_recommendations":11,"min_documents":6,"require_citations":true,"min_output_chars":5001.5}}`, 0)
	e := got.GetExpected()
	if err != nil || e.GetMinInsights() != 20 || e.GetMinRecommendations() != 10 || e.GetMinDocuments() != 5 || !e.GetRequireCitations() || e.GetMinOutputChars() != 5000 {
		t.Errorf("%v, %v", e, err)
	}
	if got.GetReason() != "x" {
		t.Errorf("a model claims a fallback: %q", got.GetReason())
	}
	got, _ = quality.ParseComplexity(`{"level":"MEDIUM","expected":{"min_insights":-1,"min_documents":"2","require_citations":null,"min_recommendations":1.5}}`, 0)
	if e := got.GetExpected(); e.MinInsights != nil || e.MinDocuments != nil || e.RequireCitations != nil || e.GetMinRecommendations() != 1 {
		t.Errorf("%v", e)
	}
	for _, nothing := range []string{
		`{}`, `null`, `7`, `{"min_documents":null}`, `{"min_insights":0,"min_recommendations":0.9,"min_documents":0,"require_citations":false,"min_output_chars":0}`,
	} {
		if got, _ := quality.ParseComplexity(`{"level":"MEDIUM","expected":`+nothing+`}`, 0); got.GetExpected() != nil {
			t.Errorf("%s: %v", nothing, got.GetExpected())
		}
	}
}

func TestFallbackComplexityAtItsBounds(t *testing.T) {
	for _, c := range []struct {
		chars, sources int
		level          string
	}{
		{120, 0, "SIMPLE"}, {121, 0, "MEDIUM"}, {120, 1, "MEDIUM"}, {1199, 4, "MEDIUM"}, {1200, 0, "COMPLEX"}, {1, 5, "COMPLEX"},
	} {
		got := quality.FallbackComplexity(strings.Repeat("ü", c.chars), c.sources, "no\nanswer")
		if got.GetLevel() != c.level || got.GetReason() != "[is_fallback] no answer" || got.GetSubtaskCount() != 1 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestParseIntentFallsBackToChat(t *testing.T) {
	known := quality.Names([]*harnessv1.WorkKind{{Name: "triage"}})
	for _, c := range []struct {
		text, kind string
		confidence float64
		why        string
	}{
		{`{"kind":"synthesis","confidence":0.5}`, "synthesis", 0.5, ""},
		{"```\n{\"kind\":\" Triage \",\"confidence\":1}\n```", "triage", 1, ""},
		{`{"kind":"synthesis","confidence":0.49}`, "chat", 0, "0.49 that the kind is synthesis"},
		{`{"kind":"poetry","confidence":0.9}`, "chat", 0, `unknown kind "poetry"`},
		{`{"kind":"synthesis","confidence":NaN}`, "chat", 0, "expected a JSON object"},
		{`{"kind":"synthesis","confidence":"0.9"}`, "chat", 0, "expected a JSON object"},
		{`{"kind":"synthesis","confidence":1.01}`, "chat", 0, "expected a JSON object"},
		{`{"kind":"synthesis"}`, "chat", 0, "expected a JSON object"},
		{`{"kind":"chat","confidence":0.9}`, "chat", 0.9, ""},
		{`synthesis`, "chat", 0, "expected a JSON object"},
		{``, "chat", 0, "expected a JSON object"},
	} {
		kind, confidence, err := quality.ParseIntent(c.text, known)
		if kind != c.kind || confidence != c.confidence || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %s, %v, %v", c.text, kind, confidence, err)
		}
	}
}

// TestAnswersOfAnyText parses texts in which every parser finds something to trip over.
func TestAnswersOfAnyText(t *testing.T) {
	pieces := []string{
		`{`, `}`, `[`, `]`, `"level"`, `"score"`, `"plans"`, `"kind"`, `:`, `,`, `1`, `-1`, `1e999`, `"SIMPLE"`, `null`, "```", `{"level":"MEDIUM"}`,
		`{"score":0.5}`, `{"score":2}`, `{"plans":[{"description":"d"}]}`, "\x00", "\xff", "…",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "")
		if c, err := quality.ParseComplexity(text, 0); err == nil && (c.GetSubtaskCount() < 1 || c.GetSubtaskCount() > 10) {
			t.Fatalf("%v", c)
		}
		if v, err := quality.ParseVerdict(text); err == nil && !(v.Score >= 0 && v.Score <= 1) || len(v.Issues) > 10 {
			t.Fatalf("%v", v)
		}
		if plans := quality.ParsePlans(text); len(plans) > 3 {
			t.Fatalf("%v", plans)
		}
		if _, confidence, _ := quality.ParseIntent(text, quality.Names(nil)); math.IsNaN(confidence) || confidence > 1 {
			t.Fatal(confidence)
		}
	})
}

func ExampleParseIntent() {
	kind, confidence, err := quality.ParseIntent(`I think {"kind": "drafting", "confidence": 0.8}`, quality.Names(nil))
	fmt.Println(kind, confidence, err)
	// Output: drafting 0.8 <nil>
}
