package telemetry

import (
	"slices"
	"strings"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestJobsAreCounted(t *testing.T) {
	m, registry := measured(t)
	m.JobEnded(t.Context(), "summarize", JobAnswered, 3*time.Second)
	m.JobEnded(t.Context(), "summarize", JobAnswered, -time.Second)
	m.JobEnded(t.Context(), "verify", JobGone, time.Second)
	m.JobUsed(t.Context(), "summarize", "openai:m", &harnessv1.Usage{InputTokens: 30, OutputTokens: 4, CachedInputTokens: 10, CostMicroUsd: 2e6})
	m.JobUsed(t.Context(), "summarize", "openai:away", &harnessv1.Usage{})
	got := shownAll(t, registry)
	if slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "away") }) {
		t.Errorf("a call without tokens is counted: %q", got)
	}
	for _, want := range []string{
		"harness_job_duration_seconds{outcome=answered,purpose=summarize} 2 3",
		"harness_job_duration_seconds{outcome=gone,purpose=verify} 1 1",
		"harness_job_tokens_total{token_type=input,purpose=summarize} 30",
		"harness_job_tokens_total{token_type=output,purpose=summarize} 4",
		"harness_model_cached_tokens_total{provider_name=openai,request_model=m} 10",
		"harness_model_cost_usd_total{provider_name=openai,request_model=m} 2",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	var none *Metrics
	none.JobEnded(t.Context(), "summarize", JobFailed, 0)
	none.JobUsed(t.Context(), "summarize", "openai:m", nil)
}
