package render

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestQualityLines: what a person reads of each event of judging; texts of models and agents are cleaned.
func TestQualityLines(t *testing.T) {
	for want, e := range map[string]*harnessv1.Event{
		"work: full pipeline, complex": event.QualityComplexity(&harnessv1.QualityComplexity{Level: "COMPLEX", WorkflowType: "full_pipeline"}),
		"work: chat, simple; the kind is not known: overloaded": event.QualityComplexity(&harnessv1.QualityComplexity{
			Level: "SIMPLE", WorkflowType: "chat", KindReason: "[is_fallback] overloaded",
		}),
		"plan: Compare\uFFFD[31m by theme (best of 3)": event.QualityPlanSelected(&harnessv1.QualityPlanSelected{Plan: "Compare\x1b[31m by theme", CandidatesCount: 3}),
		"plan: Execute chat workflow directly (no model made one: overloaded)": event.QualityPlanSelected(&harnessv1.QualityPlanSelected{
			Plan: "Execute chat workflow directly", CandidatesCount: 1, Reason: "[is_fallback] overloaded",
		}),
		"quality: 0.55 of 1 from the verifier":                   event.QualityVerified(&harnessv1.QualityVerified{Score: 0.55, Feedback: "Thin."}),
		"quality: not verified: overloaded":                      event.QualityVerified(&harnessv1.QualityVerified{Feedback: "[is_fallback] overloaded"}),
		"score: REC QS 81, B (good)":                             event.QualityScored(&harnessv1.QualityScored{Type: "rec_qs", Score: 81, Grade: "B", Label: "good"}),
		"attempt 2: Low quality — retrying":                      event.QualityRetry(2, "Low quality — retrying", 0.4),
		"no attempt of 3 was good enough: the best is delivered": event.QualityDegraded(&harnessv1.QualityDegraded{AttemptsMade: 3}),
		"2 passes, 1 accepted: the best has 0.95 of 1":           event.QualityIterated(&harnessv1.QualityIterated{Iterations: 2, AcceptedCount: 1, BestScore: 0.95}),
		"The profile is developing after 10 runs.":               event.QualityMilestone(&harnessv1.QualityMilestone{Description: "The profile is developing after 10 runs."}),
	} {
		if got := (Style{}).qualityLines(e); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, e := range []*harnessv1.Event{
		event.QualityContract(&harnessv1.QualityContract{}), event.QualityProfile(&harnessv1.QualityProfile{}), event.ContextMetrics(&harnessv1.ContextMetrics{}), {},
	} {
		if got := (Style{}).qualityLines(e); got != nil {
			t.Errorf("%v: %q", e, got)
		}
	}
}

// TestTheLastLineNamesWhatJudgingCost in the segment, and its share.
func TestTheLastLineNamesWhatJudgingCost(t *testing.T) {
	r := &harnessv1.HarnessResult{
		Duration: durationpb.New(time.Second), Usage: &harnessv1.Usage{CostMicroUsd: 12_000},
		Quality: &harnessv1.QualityVerdict{Usage: &harnessv1.Usage{CostMicroUsd: 600}, CostShare: proto.Uint32(5)},
	}
	if got := (Style{}).ResultLines(r)[1]; !strings.Contains(got, "$0.0120 - judging $0.0006 (5 %) - ") {
		t.Error(got)
	}
	r.Quality.CostShare = nil
	if got := (Style{}).ResultLines(r)[1]; strings.Contains(got, "judging") {
		t.Error(got)
	}
}
