// Package spans makes the spans of a run. It needs the API of OpenTelemetry alone: what
// becomes of spans is package telemetry's.
//
// Whether there are spans is in the context: under a span that is recorded Start makes
// a child of it, with the same provider, and elsewhere it does nothing. So code that works
// on a run needs no configuration, and costs nothing where the run is not traced.
package spans

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/metadata"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/harnessmesh/harnessmesh"

// StartRun is the name of the span that starts a run: but for calls of the gateway the
// only one that a trace may begin with.
const StartRun = "start_run"

// none is what there is without a span.
var none trace.Span = noop.Span{}

// Recording says whether what happens under ctx is recorded.
func Recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Start begins a span under the one of ctx. Without one, or when that is not recorded,
// it returns ctx and a span that does nothing. attributes may be nil.
func Start(ctx context.Context, name string, kind trace.SpanKind, attributes func() []attribute.KeyValue) (context.Context, trace.Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, none
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(kind)}
	if attributes != nil {
		options = append(options, trace.WithAttributes(attributes()...))
	}
	return above.TracerProvider().Tracer(Scope).Start(ctx, name, options...) //nolint:spancheck // the caller ends it
}

// Fail marks a span as failed: kind is one of few words, such as timeout, message is for
// people.
func Fail(span trace.Span, kind, message string) {
	if span.IsRecording() {
		span.SetStatus(codes.Error, content.Cut(message, content.MaxPreview))
		span.SetAttributes(ErrorType.String(kind))
	}
}

// Ref is the span of ctx, zero when there is none or it is not sampled.
func Ref(ctx context.Context) runtrace.Ref {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsSampled() || !sc.IsValid() {
		return runtrace.Ref{}
	}
	return runtrace.Ref{Trace: runtrace.TraceID(sc.TraceID()), Span: runtrace.SpanID(sc.SpanID())}
}

// Under is ctx under a span that somebody else makes; ctx itself for none.
func Under(ctx context.Context, ref runtrace.Ref) context.Context {
	if ref == (runtrace.Ref{}) {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, contextOf(ref))
}

// Incoming is ctx under the caller's span that the metadata of a call names. A call that
// a handler of OpenTelemetry has seen is under a span already.
func Incoming(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	if values := metadata.ValueFromIncomingContext(ctx, runtrace.Header); len(values) > 0 {
		// Also under one that is not sampled: then this one is not either.
		return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{runtrace.Header: values[0]})
	}
	return ctx
}

// Link is a link to a span by its traceparent; ok is false when it names none.
func Link(traceparent string, attributes ...attribute.KeyValue) (link trace.Link, ok bool) {
	ref, ok := runtrace.Parse(traceparent)
	if !ok {
		return trace.Link{}, false
	}
	return trace.Link{SpanContext: contextOf(ref), Attributes: attributes}, true
}

func contextOf(ref runtrace.Ref) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(ref.Trace), SpanID: trace.SpanID(ref.Span), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

type idsKey struct{}

// Given is the id that the next span of ctx has to have, for a generator of ids.
func Given(ctx context.Context) (runtrace.Ref, bool) {
	ref, ok := ctx.Value(idsKey{}).(runtrace.Ref)
	return ref, ok
}

// End makes the spans that a committed step ends. step holds the state behind them.
func End(tracer trace.Tracer, run runlog.Run, step *harnessv1.Step, ended []runtrace.Span) {
	if tracer == nil {
		return
	}
	for _, s := range ended {
		ctx := Under(context.WithValue(context.Background(), idsKey{}, s.Ref), runtrace.Ref{Trace: s.Trace, Span: s.Parent})
		options := []trace.SpanStartOption{trace.WithTimestamp(s.Start)}
		if s.Parent == (runtrace.SpanID{}) {
			ctx = context.WithValue(context.Background(), idsKey{}, s.Ref)
			options = append(options, trace.WithNewRoot())
		}
		for _, ref := range s.Links {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: contextOf(ref)}))
		}
		snapshot := step.GetSnapshot()
		name := fmt.Sprintf("turn %d", max(snapshot.GetTurn().GetNumber(), 1))
		if s.Kind == runtrace.Stretch {
			name = invokeAgent
			if agent := snapshot.GetTrace().GetAgentName(); agent != "" {
				name += " " + agent
			}
		}
		_, span := tracer.Start(ctx, name, options...)
		if span.IsRecording() {
			span.SetAttributes(RunAttributes(run)...)
			span.SetAttributes(grouping(s, step)...)
			if kind := failed(step); kind != "" {
				Fail(span, kind, snapshot.GetStopReason().GetMessage())
			}
		}
		end := s.End
		if end.Before(s.Start) { // clocks of two machines
			end = s.Start
		}
		span.End(trace.WithTimestamp(end))
	}
}
