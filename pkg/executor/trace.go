package executor

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// span starts the span of one execution of a step, under the cycle that the step
// belongs to. It is linked to the span that wrote the step. If another worker has
// started before, it is also linked to the span that wrote that worker's newest record.
// Without a tracer, or for a run that is not traced, it does nothing.
func (l *loop) span(ctx context.Context, task *Task) (context.Context, trace.Span) {
	state := task.Step().GetSnapshot().GetTrace()
	if l.cfg.Tracer == nil || state == nil {
		return ctx, noop.Span{}
	}
	above := runtrace.Current(state)
	attributes := append(spans.RunAttributes(task.Run),
		spans.Executor.String(l.x.Name()), spans.Version.Int64(int64(task.Entry.Header.Version))) //nolint:gosec // versions stay small
	if task.Redelivered {
		attributes = append(attributes, spans.Redelivered.Bool(true))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	if written := task.Entry.Header.Traceparent; written != runtrace.Traceparent(above) {
		if link, ok := spans.Link(written, spans.Cause.String("handed on")); ok {
			options = append(options, trace.WithLinks(link))
		}
	}
	if n := len(task.Journal); n > 0 {
		attributes = append(attributes, spans.Attempt.Int(attempts(task.Journal)+1))
		if link, ok := spans.Link(task.Journal[n-1].Header.Traceparent, spans.Cause.String("taken over")); ok {
			options = append(options, trace.WithLinks(link))
		}
	}
	options = append(options, trace.WithAttributes(attributes...))
	return l.cfg.Tracer.Start(spans.Under(ctx, above), l.x.Name(), options...) //nolint:spancheck // the caller ends it
}

// attempts returns how many workers have claimed the turn of a journal.
func attempts(journal []runlog.Entry) int {
	n := 0
	for _, e := range journal {
		if e.Record.GetJournal().GetTurnStarted() != nil {
			n++
		}
	}
	return n
}

// describe sets the result of the step on a span.
func describe(ctx context.Context, run runlog.Run, span trace.Span, outcome *harnessv1.Outcome, err error) {
	if !span.IsRecording() {
		return
	}
	step := outcome.GetStep()
	switch verdictOf(err, ctx.Err() != nil) {
	case committed:
		span.SetAttributes(spans.Outcome.String("committed"), spans.StepTo.String(step.GetTo()))
	case fencedOff:
		span.SetAttributes(spans.Outcome.String("lost"))
		return
	case stopping, unavailable:
		span.SetAttributes(spans.Outcome.String("put_back"))
		return
	case failed:
		span.SetAttributes(spans.Outcome.String("failed"))
		spans.Fail(span, "executor_error", err.Error())
		return
	}
	if t := step.GetTurnComplete(); t != nil {
		span.SetAttributes(spans.TurnNumber.Int(int(t.GetTurnNumber())))
		if e := t.GetError(); e != nil {
			spans.Fail(span, runstate.ErrorKind(e.GetKind()), e.GetMessage())
		}
	}
	if c := step.GetCompactionComplete(); c != nil {
		span.SetAttributes(compacted(c, step.GetSnapshot().GetTokenBudget().GetUsedTokens())...)
		spanOfPass(ctx, run, outcome)
	}
	if v := verdictOfSegment(step); v != nil {
		spanOfSegment(ctx, run, v)
	}
}

// compacted returns the tokens of a compaction. Freed tokens are no longer in the
// window.
func compacted(c *harnessv1.CompactionComplete, after uint32) []attribute.KeyValue {
	return []attribute.KeyValue{
		spans.TokensBefore.Int64(int64(after) + int64(c.GetFreedTokens())),
		spans.TokensAfter.Int64(int64(after)), spans.TokensFreed.Int64(int64(c.GetFreedTokens())),
	}
}

// trace stores the run's position in its trace in a record that contains a step, and
// returns the spans that end with it. The executor cannot change it.
func (t *Task) trace(rec *harnessv1.Record) (ended []runtrace.Span) {
	step := rec.GetStep()
	if step.GetSnapshot() == nil {
		return nil
	}
	step.Snapshot.Trace, ended = runtrace.Next(t.Step().GetSnapshot().GetTrace(), step, rec.GetVersion(), rec.GetCommitTime().AsTime())
	return ended
}
