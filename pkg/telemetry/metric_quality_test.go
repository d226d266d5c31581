package telemetry

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// TestJudgingIsCounted: scores by kind, fallbacks, retries, healed attempts, and the share in the cost.
func TestJudgingIsCounted(t *testing.T) {
	m, registry := measured(t)
	ctx := context.Background()
	judged := handed(workflow.StopDecision, workflow.Repair, &harnessv1.Snapshot{}, func(*harnessv1.Step) {})
	judged.Events = []*harnessv1.Event{
		{Event: &harnessv1.Event_QualityComplexity{QualityComplexity: &harnessv1.QualityComplexity{Reason: "[is_fallback] down"}}},
		{Event: &harnessv1.Event_QualityVerified{QualityVerified: &harnessv1.QualityVerified{Feedback: "[is_fallback] down"}}},
		{Event: &harnessv1.Event_QualityVerified{QualityVerified: &harnessv1.QualityVerified{Feedback: "Good."}}},
		{Event: &harnessv1.Event_QualityRetry{QualityRetry: &harnessv1.QualityRetry{Reason: "Low"}}},
	}
	m.stored(ctx, judged)
	for _, v := range []*harnessv1.QualityVerdict{
		{Kind: "chat", Attempts: 1, Combined: 0.5},
		{Kind: "drafting", Attempts: 2, Combined: 0.75, Usage: &harnessv1.Usage{CostMicroUsd: 250}},
		{
			Kind: "own", Level: "COMPLEX", Attempts: 3, Combined: 0.25, Degraded: true, Duration: durationpb.New(3 * time.Second),
			Variety: &harnessv1.AnswerFigures{Words: 300, Distinct: 0.1, Bits: 4.5}, Repetitive: true, IssueBits: proto.Float64(1.25),
		},
		{Kind: "chat", Attempts: 2, Iterations: 2, Combined: 0.5},
		nil,
	} {
		s := &harnessv1.Snapshot{Spent: &harnessv1.Spent{Usage: &harnessv1.Usage{}}}
		if v.GetUsage() != nil {
			s.Spent.Usage.CostMicroUsd = 1000
		}
		m.stored(ctx, handed(workflow.StopDecision, runlog.End, s, func(step *harnessv1.Step) {
			step.Message = &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_DONE, Quality: v}}
		}))
	}
	got := slices.DeleteFunc(shown(t, registry), func(line string) bool { return !strings.HasPrefix(line, "harness_quality_") })
	want := []string{
		"harness_quality_answer_entropy{kind=other} 1 4.5",
		"harness_quality_cost_share{} 1 0.25",
		"harness_quality_fallbacks_total{judge=complexity} 1",
		"harness_quality_fallbacks_total{judge=verifier} 1",
		"harness_quality_healed_total{outcome=degraded} 1",
		"harness_quality_healed_total{outcome=healed} 1",
		"harness_quality_issue_entropy{} 1 1.25",
		"harness_quality_repetitive_total{kind=other} 1",
		"harness_quality_retries_total{reason=Low} 1",
		"harness_quality_score{kind=chat} 2 1",
		"harness_quality_score{kind=drafting} 1 0.75",
		"harness_quality_score{kind=other} 1 0.25",
		"harness_quality_segment_duration_seconds{kind=other,level=complex} 1 3",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
