package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/metric"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// tenths are upper bounds of scores from 0 to 1.
var tenths = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

// entropies are upper bounds of an entropy in bits: pairs of words of an answer have up to
// about 12, categories of issues up to 3.5.
var entropies = []float64{0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14}

// fallbackMark begins what a judge that did not answer is recorded with.
const fallbackMark = "[is_fallback]"

// The instruments of quality.
var (
	qualityScore = instrument{Name: "harness.quality.score", Kind: Histogram, Unit: "{score}", Buckets: tenths,
		Description: "Combined score of what a segment delivers, 0 to 1. kind: the kind of work, other for those of agents.", Attributes: []string{"kind"}}
	qualityCostShare = instrument{Name: "harness.quality.cost_share", Kind: Histogram, Unit: "{share}", Buckets: tenths,
		Description: "Share of judging in the cost of a segment that ends, 0 to 1; nothing for those without a known price.", Attributes: nil}
	qualityFallbacks = instrument{Name: "harness.quality.fallbacks", Kind: Counter, Unit: "{judge}",
		Description: "Judges that did not answer. judge: complexity, intent, plan or verifier.", Attributes: []string{"judge"}}
	qualityRetries = instrument{Name: "harness.quality.retries", Kind: Counter, Unit: "{attempt}",
		Description: "Attempts after the first of a segment.", Attributes: []string{"reason"}}
	qualityHealed = instrument{Name: "harness.quality.healed", Kind: Counter, Unit: "{segment}",
		Description: "Segments with several attempts that ended. outcome: healed, or degraded if none was good enough.", Attributes: []string{"outcome"}}
	qualityDuration = instrument{Name: "harness.quality.segment.duration", Kind: Histogram, Unit: "s", Buckets: long,
		Description: "Time from the start of a judged segment to its verdict. level: simple, medium or complex.", Attributes: []string{"kind", "level"}}
	qualityBits = instrument{Name: "harness.quality.answer.entropy", Kind: Histogram, Unit: "{bit}", Buckets: entropies,
		Description: "Entropy of the pairs of neighbouring words in an answer, in bits a pair.", Attributes: []string{"kind"}}
	qualityIssueBits = instrument{Name: "harness.quality.issue.entropy", Kind: Histogram, Unit: "{bit}", Buckets: entropies,
		Description: "Entropy of the categories of issues in the last 20 segments of a profile, in bits.", Attributes: nil}
	qualityRepetitive = instrument{Name: "harness.quality.repetitive", Kind: Counter, Unit: "{answer}",
		Description: "Answers with at least 200 words and fewer than 3 distinct in 10 pairs of neighbouring words.", Attributes: []string{"kind"}}
)

// qualityMetrics measure judging.
type qualityMetrics struct {
	score, costShare, duration, bits, issueBits histogram
	fallbacks, retries, healed, repetitive      counter
}

// create creates the instruments.
func (q *qualityMetrics) create(meter metric.Meter) (errs []error) {
	for _, h := range []struct {
		of instrument
		to *histogram
	}{{qualityScore, &q.score}, {qualityCostShare, &q.costShare}, {qualityDuration, &q.duration}, {qualityBits, &q.bits}, {qualityIssueBits, &q.issueBits}} {
		errs = append(errs, h.to.create(meter, h.of))
	}
	for _, c := range []struct {
		of instrument
		to *counter
	}{{qualityFallbacks, &q.fallbacks}, {qualityRetries, &q.retries}, {qualityHealed, &q.healed}, {qualityRepetitive, &q.repetitive}} {
		errs = append(errs, c.to.create(meter, c.of))
	}
	return errs
}

// knownKinds are the built-in kinds of work. Agents name further ones, which are no labels.
var knownKinds = map[string]bool{"chat": true, "synthesis": true, "recommendation": true, "drafting": true, "full_pipeline": true}

// knownLevels are the levels of complexity.
var knownLevels = map[string]bool{"simple": true, "medium": true, "complex": true}

// stored counts the quality events of a record, and the verdict of a result.
func (q *qualityMetrics) stored(ctx context.Context, rec *harnessv1.Record) {
	for _, e := range rec.GetEvents() {
		if strings.HasPrefix(e.GetQualityComplexity().GetKindReason(), fallbackMark) {
			q.fallbacks.add(ctx, 1, "intent")
		}
		switch {
		case strings.HasPrefix(e.GetQualityComplexity().GetReason(), fallbackMark):
			q.fallbacks.add(ctx, 1, "complexity")
		case strings.HasPrefix(e.GetQualityPlanSelected().GetReason(), fallbackMark):
			q.fallbacks.add(ctx, 1, "plan")
		case strings.HasPrefix(e.GetQualityVerified().GetFeedback(), fallbackMark):
			q.fallbacks.add(ctx, 1, "verifier")
		case e.GetQualityRetry() != nil:
			q.retries.add(ctx, 1, e.GetQualityRetry().GetReason())
		}
	}
	v := rec.GetStep().GetResult().GetQuality()
	if v == nil {
		return
	}
	kind := v.GetKind()
	if !knownKinds[kind] {
		kind = Other
	}
	q.score.record(ctx, v.GetCombined(), kind)
	q.scan(ctx, v, kind)
	switch {
	case v.GetAttempts() <= max(v.GetIterations(), 1):
	case v.GetDegraded():
		q.healed.add(ctx, 1, "degraded")
	default:
		q.healed.add(ctx, 1, "healed")
	}
	spent := rec.GetStep().GetSnapshot().GetSpent()
	if all, before := spent.GetUsage().GetCostMicroUsd(), spent.GetUsageBeforeSegment().GetCostMicroUsd(); all > before {
		q.costShare.record(ctx, min(float64(v.GetUsage().GetCostMicroUsd())/float64(all-before), 1))
	}
}

// scan measures how long a segment took, and how varied its answer and its profile's issues are.
func (q *qualityMetrics) scan(ctx context.Context, v *harnessv1.QualityVerdict, kind string) {
	if v.GetDuration() != nil {
		level := strings.ToLower(v.GetLevel())
		if !knownLevels[level] {
			level = Other
		}
		q.duration.record(ctx, v.GetDuration().AsDuration().Seconds(), kind, level)
	}
	if v.GetVariety() != nil {
		q.bits.record(ctx, v.GetVariety().GetBits(), kind)
	}
	if v.IssueBits != nil {
		q.issueBits.record(ctx, v.GetIssueBits())
	}
	if v.GetRepetitive() {
		q.repetitive.add(ctx, 1, kind)
	}
}
