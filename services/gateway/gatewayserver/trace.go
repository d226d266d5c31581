package gatewayserver

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// startSpan starts the span of the start of a run, below the caller's: the run belongs
// to its trace. It ends with the start, even if the call continues as a stream.
func (s *Server) startSpan(ctx context.Context) (context.Context, trace.Span) {
	if s.tracer == nil {
		return ctx, noop.Span{}
	}
	return s.tracer.Start(spans.Incoming(ctx), spans.StartRun) //nolint:spancheck // endStart ends it
}

func endStart(span trace.Span, run runlog.Run, existed bool, err error) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(spans.RunAttributes(run)...)
	if existed { // it already has a trace
		span.SetAttributes(spans.AlreadyExists.Bool(true))
	}
	var refusal *fault.Error
	switch {
	case errors.As(err, &refusal):
		spans.Fail(span, fault.ReasonName(refusal.Reason), refusal.Message)
	case err != nil:
		spans.Fail(span, "_OTHER", err.Error())
	}
}

// sender returns the span that gives an input to a run; empty without tracing.
func (s *Server) sender(ctx context.Context) string {
	if s.tracer == nil {
		return ""
	}
	return runtrace.Traceparent(spans.Ref(spans.Incoming(ctx)))
}
