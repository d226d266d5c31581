package executor

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// spanOfPass adds the span of the pass of compaction that an outcome has, under the span of
// ctx. It ends now and begins as long before as the pass took.
func spanOfPass(ctx context.Context, run runlog.Run, outcome *harnessv1.Outcome) {
	level := "blocking" // of a pass that waited: the step before has its beginning
	for _, e := range outcome.GetEvents() {
		if started := e.GetCompactionStarted(); started != nil {
			level = started.GetLevel()
		}
		pass := e.GetCompactionCompleted()
		if pass == nil {
			continue
		}
		now := time.Now()
		_, span := trace.SpanFromContext(ctx).TracerProvider().Tracer(spans.Scope).Start(ctx, spans.Compact,
			trace.WithTimestamp(now.Add(-pass.GetDuration().AsDuration())), trace.WithAttributes(passAttributes(run, pass, level)...))
		span.End(trace.WithTimestamp(now))
	}
}

func passAttributes(run runlog.Run, pass *harnessv1.CompactionCompleted, level string) []attribute.KeyValue {
	attributes := append(spans.RunAttributes(run),
		spans.TokensBefore.Int64(int64(pass.GetTokensBefore())), spans.TokensAfter.Int64(int64(pass.GetTokensAfter())),
		spans.TokensFreed.Int64(int64(pass.GetFreedTokens())), spans.Strategies.StringSlice(pass.GetStrategies()),
		spans.PassLevel.String(level), spans.PassNumber.Int64(int64(pass.GetPass())))
	if pass.GetError() != "" {
		attributes = append(attributes, spans.SummaryError.String(pass.GetError()))
	}
	return attributes
}
