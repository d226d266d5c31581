package inferenceserver

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// startJob starts the span of a delivery of a job, under the span that created the job.
// Without a tracer, or for a job that is not traced, it does nothing.
func (w *worker) startJob(ctx context.Context, job *harnessv1.Job, redelivered bool) (context.Context, trace.Span) {
	above, ok := runtrace.Parse(job.GetTraceparent())
	if w.tracer == nil || !ok {
		return ctx, noop.Span{}
	}
	attributes := append(spans.RunAttributes(runOf(job)), spans.JobPurpose.String(job.GetPurpose()), spans.JobKey.String(job.GetKey()),
		spans.ProviderName.String(spans.Provider(job.GetModel())), spans.RequestModel.String(spans.ModelName(job.GetModel())))
	if redelivered {
		attributes = append(attributes, spans.Redelivered.Bool(true))
	}
	return w.tracer.Start(spans.Under(ctx, above), "job "+job.GetPurpose(), //nolint:spancheck // the caller ends it
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...))
}

// describeJob sets on a span how a delivery ended.
func describeJob(span trace.Span, outcome telemetry.JobOutcome, result *harnessv1.JobResult) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(spans.Outcome.String(string(outcome)))
	if result == nil {
		return
	}
	span.SetAttributes(spans.JobTries.Int(int(result.GetTries())))
	span.SetAttributes(spans.Usage(result.GetUsage())...)
	if result.GetError() != "" {
		spans.Fail(span, "job_error", result.GetError())
	}
}

// startTry starts the span of one try at a model.
func (s *Server) startTry(ctx context.Context, job *harnessv1.Job, messages []*harnessv1.Message, number uint32) (context.Context, trace.Span) {
	ref := job.GetModel()
	return spans.Start(ctx, spans.Chat+" "+spans.ModelName(ref), trace.SpanKindClient, func() []attribute.KeyValue {
		attributes := append(spans.RunAttributes(runOf(job)),
			spans.OperationName.String(spans.Chat), spans.ProviderName.String(spans.Provider(ref)), spans.RequestModel.String(spans.ModelName(ref)),
			spans.JobPurpose.String(job.GetPurpose()), spans.Try.Int(int(number)), spans.MessageCount.Int(len(messages)))
		if s.cfg.Content {
			attributes = append(attributes, spans.InputMessages.String(spans.Messages(messages)))
		}
		return attributes
	})
}

// describeResult sets on a span what a try returned.
func (s *Server) describeResult(span trace.Span, result *harnessv1.JobResult) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(spans.Usage(result.GetUsage())...)
	if reason := result.GetFinishReason(); reason != "" {
		span.SetAttributes(spans.FinishReasons.StringSlice([]string{reason}))
	}
	if s.cfg.Content {
		span.SetAttributes(spans.OutputMessages.String(spans.Messages([]*harnessv1.Message{{
			Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(result.GetText()),
		}})))
	}
}
