package inferenceserver_test

import (
	"context"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/inference/inferenceserver"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// traced starts a worker whose spans a recorder gets.
func (b *bed) traced(withContent bool) *tracetest.SpanRecorder {
	b.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	server := b.server(func(cfg *inferenceserver.Config) { cfg.Content = withContent })
	b.Start(func(ctx context.Context, cfg executor.Config) error {
		cfg.Tracer = provider.Tracer("test")
		return server.Run(ctx, cfg)
	})
	return recorder
}

// attributes returns the attributes of a span as text.
func attributes(span sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range span.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// TestSpansOfAJob: a job and its tries are in the trace of the span that created it, with
// what they used and, unless it is configured, without contents.
func TestSpansOfAJob(t *testing.T) {
	const above = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, withContent := range []bool{false, true} {
		b := newBed(t, modeltest.Reply{Status: 529, Header: map[string]string{"Retry-After": "0"}}, said("The port is 8080."))
		recorder := b.traced(withContent)
		b.create(b.job("k1", func(j *harnessv1.Job) { j.Traceparent = above }))
		b.result("k1")
		b.await("three spans", func() bool { return len(recorder.Ended()) == 3 })
		failed, answered, job := recorder.Ended()[0], recorder.Ended()[1], recorder.Ended()[2]
		if job.Name() != "job summarize" || job.Parent().SpanID().String() != "b7ad6b7169203331" || job.SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("the job is %s below %s", job.Name(), job.Parent().SpanID())
		}
		for key, want := range map[string]string{
			"harness.run.id": b.Run.ID, "harness.job.purpose": "summarize", "harness.job.key": "k1", "harness.job.tries": "2", "harness.outcome": "answered",
			"gen_ai.request.model": "test-model", "gen_ai.usage.input_tokens": "30", "gen_ai.usage.output_tokens": "4", "harness.cost_micro_usd": "7",
		} {
			if got := attributes(job)[key]; got != want {
				t.Errorf("%s of the job is %q, want %q", key, got, want)
			}
		}
		for i, span := range []sdktrace.ReadOnlySpan{failed, answered} {
			if span.Name() != "chat test-model" || span.Parent().SpanID() != job.SpanContext().SpanID() || attributes(span)["harness.try"] != string(rune('1'+i)) ||
				attributes(span)["harness.messages"] != "2" {
				t.Errorf("try %d is %s with %v", i+1, span.Name(), attributes(span))
			}
		}
		if attributes(failed)["error.type"] != "529" || attributes(answered)["gen_ai.response.finish_reasons"] != `["stop"]` {
			t.Errorf("the tries have %v and %v", attributes(failed), attributes(answered))
		}
		in, out := attributes(answered)["gen_ai.input.messages"], attributes(answered)["gen_ai.output.messages"]
		if strings.Contains(in, "The long story") != withContent || strings.Contains(out, "8080") != withContent {
			t.Errorf("content %t: %q and %q", withContent, in, out)
		}
	}
}

// TestJobsThatAreNotTracedHaveNoSpans: a job without a span above it starts no trace.
func TestJobsThatAreNotTracedHaveNoSpans(t *testing.T) {
	b := newBed(t, said("The port is 8080."))
	recorder := b.traced(false)
	b.create(b.job("k1", nil))
	b.result("k1")
	b.idle()
	if spans := recorder.Ended(); len(spans) != 0 {
		t.Errorf("%d spans", len(spans))
	}
}
