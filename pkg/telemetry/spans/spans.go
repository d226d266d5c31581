// Package spans creates the spans of a run. It needs only the API of OpenTelemetry:
// package telemetry exports the spans.
//
// The context decides whether there are spans: under a recorded span Start creates a
// child of it, with the same provider, and otherwise it does nothing. So code that
// works on a run needs no configuration, and costs nothing for a run that is not
// traced.
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

// StartRun is the name of the span that starts a run. Apart from calls of the gateway,
// only this span may start a trace.
const StartRun = "start_run"

// none is the span where there is no other.
var none trace.Span = noop.Span{}

// Start starts a span under the one of ctx. Without a recorded span it returns ctx and
// a span that does nothing. attributes may be nil.
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

// Fail marks a span as failed: kind is one of few words, such as timeout, message is
// for people.
func Fail(span trace.Span, kind, message string) {
	if span.IsRecording() {
		span.SetStatus(codes.Error, content.Cut(message, content.MaxPreview))
		span.SetAttributes(ErrorType.String(kind))
	}
}

// Ref returns the span of ctx, zero if there is none or it is not sampled.
func Ref(ctx context.Context) runtrace.Ref {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsSampled() || !sc.IsValid() {
		return runtrace.Ref{}
	}
	return runtrace.Ref{Trace: runtrace.TraceID(sc.TraceID()), Span: runtrace.SpanID(sc.SpanID())}
}

// Under returns ctx under a span of another process; ctx itself for none.
func Under(ctx context.Context, ref runtrace.Ref) context.Context {
	if ref == (runtrace.Ref{}) {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, contextOf(ref))
}

// Incoming returns ctx under the caller's span that the metadata of a call names. A
// call that a handler of OpenTelemetry has handled is already under a span.
func Incoming(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	if values := metadata.ValueFromIncomingContext(ctx, runtrace.Header); len(values) > 0 {
		// This includes a span that is not sampled, so that ctx is not sampled either.
		return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{runtrace.Header: values[0]})
	}
	return ctx
}

// Link returns a link to a span by its traceparent; ok is false for an invalid one.
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

// Given returns the id that the next span of ctx must have, for a generator of ids.
func Given(ctx context.Context) (runtrace.Ref, bool) {
	ref, ok := ctx.Value(idsKey{}).(runtrace.Ref)
	return ref, ok
}

// End creates the spans that a committed step ends. step contains the state after them.
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
