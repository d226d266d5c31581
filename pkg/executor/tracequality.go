package executor

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// verdictOfSegment returns the verdict on the segment that a step ends; nil if its work was not
// judged, and for a step that closes the log.
func verdictOfSegment(step *harnessv1.Step) *harnessv1.QualityVerdict {
	if step.GetFrom() != workflow.StopDecision || runstate.Expired(step.GetSnapshot()) {
		return nil
	}
	return step.GetResult().GetQuality()
}

// spanOfSegment adds the span of the segment that a verdict is on, under the span of ctx. It
// ends now and begins as long before as the segment took.
func spanOfSegment(ctx context.Context, run runlog.Run, v *harnessv1.QualityVerdict) {
	now := time.Now()
	_, span := trace.SpanFromContext(ctx).TracerProvider().Tracer(spans.Scope).Start(ctx, spans.Judge,
		trace.WithTimestamp(now.Add(-v.GetDuration().AsDuration())), trace.WithAttributes(verdictAttributes(run, v)...))
	span.End(trace.WithTimestamp(now))
}

func verdictAttributes(run runlog.Run, v *harnessv1.QualityVerdict) []attribute.KeyValue {
	attributes := append(spans.RunAttributes(run),
		spans.QualityKind.String(v.GetKind()), spans.QualityLevel.String(strings.ToLower(v.GetLevel())),
		spans.QualityAttempts.Int(int(v.GetAttempts())), spans.QualityDelivered.Int(int(v.GetDelivered())), spans.QualityIterations.Int(int(v.GetIterations())),
		spans.QualityCombined.Float64(v.GetCombined()), spans.QualityContract.Bool(v.GetContractPassed()), spans.QualityDegraded.Bool(v.GetDegraded()),
		spans.QualityDuration.Int64(v.GetDuration().AsDuration().Milliseconds()),
		spans.AnswerWords.Int(int(v.GetVariety().GetWords())), spans.AnswerDistinct.Float64(v.GetVariety().GetDistinct()),
		spans.AnswerBits.Float64(v.GetVariety().GetBits()), spans.AnswerRepetitive.Bool(v.GetRepetitive()))
	attributes = append(attributes, spans.Usage(v.GetUsage())...)
	if v.VerifierScore != nil {
		attributes = append(attributes, spans.QualityVerifier.Float64(v.GetVerifierScore()))
	}
	if v.IssueBits != nil {
		attributes = append(attributes, spans.IssueBits.Float64(v.GetIssueBits()))
	}
	if scores := scoresOf(v); len(scores) > 0 {
		attributes = append(attributes, spans.QualityScores.StringSlice(scores))
	}
	return attributes
}

// scoresOf returns the scores of a verdict as NAME=SCORE.
func scoresOf(v *harnessv1.QualityVerdict) []string {
	scores := make([]string, 0, len(v.GetScores()))
	for _, s := range v.GetScores() {
		scores = append(scores, fmt.Sprintf("%s=%d", s.GetType(), s.GetScore()))
	}
	return scores
}

// logSegment logs the verdict on the segment that a committed step ends.
func logSegment(ctx context.Context, logger *slog.Logger, step *harnessv1.Step) {
	v := verdictOfSegment(step)
	if v == nil {
		return
	}
	attributes := []slog.Attr{
		slog.String("kind", v.GetKind()), slog.String("level", strings.ToLower(v.GetLevel())),
		slog.Int("attempts", int(v.GetAttempts())), slog.Int("delivered", int(v.GetDelivered())), slog.Int("iterations", int(v.GetIterations())),
		slog.Float64("combined", v.GetCombined()), slog.Bool("contract_passed", v.GetContractPassed()), slog.Bool("degraded", v.GetDegraded()),
		slog.String("scores", strings.Join(scoresOf(v), " ")),
		slog.Uint64("input_tokens", v.GetUsage().GetInputTokens()), slog.Uint64("output_tokens", v.GetUsage().GetOutputTokens()),
		slog.Uint64("cost_micro_usd", v.GetUsage().GetCostMicroUsd()), slog.Int64("duration_ms", v.GetDuration().AsDuration().Milliseconds()),
		slog.Int("words", int(v.GetVariety().GetWords())), slog.Float64("distinct", v.GetVariety().GetDistinct()),
		slog.Float64("answer_bits", v.GetVariety().GetBits()), slog.Bool("repetitive", v.GetRepetitive()),
	}
	if v.VerifierScore != nil {
		attributes = append(attributes, slog.Float64("verifier_score", v.GetVerifierScore()))
	}
	if v.IssueBits != nil {
		attributes = append(attributes, slog.Float64("issue_bits", v.GetIssueBits()))
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "segment judged", attributes...)
}
