package turnserver

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// startModelSpan starts the span of one try at a model.
func (t *execution) startModelSpan(ctx context.Context, a turn.AskModel) (context.Context, trace.Span) {
	return spans.Start(ctx, spans.Chat+" "+spans.ModelName(a.Ref), trace.SpanKindClient, func() []attribute.KeyValue {
		attributes := append(spans.RunAttributes(t.run),
			spans.OperationName.String(spans.Chat), spans.ProviderName.String(spans.Provider(a.Ref)), spans.RequestModel.String(spans.ModelName(a.Ref)),
			spans.RequestStream.Bool(t.request.Streaming), spans.TurnNumber.Int(int(t.progress.Number)), spans.Try.Int(int(a.Try)),
			spans.MessageCount.Int(len(t.request.Messages)))
		if t.server.cfg.Content {
			attributes = append(attributes, spans.InputMessages.String(spans.Messages(t.request.Messages)))
		}
		return attributes
	})
}

// describeResponse sets on a span how a try at a model ended.
func (t *execution) describeResponse(ctx context.Context, span trace.Span, ref string, r *model.Response, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		spans.FailTry(ctx, span, model.AsError(err))
		return
	}
	usage := r.Usage
	if usage == nil {
		usage = &harnessv1.Usage{}
	}
	span.SetAttributes(spans.Usage(usage)...)
	if cost := t.server.cfg.Price(ref, r); cost > 0 {
		span.SetAttributes(spans.CostMicroUSD.Int64(int64(cost))) //nolint:gosec // far below
	}
	span.SetAttributes(spans.FinishReasons.StringSlice([]string{r.FinishReason}))
	if r.Model != "" {
		span.SetAttributes(spans.ResponseModel.String(r.Model))
	}
	if t.server.cfg.Content {
		span.SetAttributes(spans.OutputMessages.String(spans.Messages([]*harnessv1.Message{{
			Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(r.Text), ToolCalls: r.ToolCalls,
		}})))
	}
}

// deliverSpan delivers a call, as a span.
func (t *execution) deliverSpan(ctx context.Context, a turn.SendCall) turn.Event {
	ctx, span := spans.Start(ctx, spans.ExecuteTool+" "+a.Call.Tool, trace.SpanKindInternal, func() []attribute.KeyValue {
		attributes := append(spans.RunAttributes(t.run),
			spans.OperationName.String(spans.ExecuteTool), spans.ToolName.String(a.Call.Tool), spans.ToolCallID.String(a.Call.ID),
			spans.ToolType.String("function"), spans.TurnNumber.Int(int(t.progress.Number)))
		if t.server.cfg.Content {
			attributes = append(attributes, spans.ToolArguments.String(content.Cut(content.Text(a.Call.Arguments), spans.MaxText)))
		}
		return attributes
	})
	defer span.End()
	event := t.deliver(ctx, a)
	if span.IsRecording() {
		t.describeCall(span, event)
	}
	return event
}

// describeCall sets on a span how a call ended.
func (t *execution) describeCall(span trace.Span, event turn.Event) {
	switch e := event.(type) {
	case turn.CallMoved:
		span.SetAttributes(spans.ToolOutcome.String("moved"))
	case turn.CallBroken:
		spans.Fail(span, "broken_off", e.Err.Error())
	case turn.CallEnded:
		outcome := strings.ToLower(strings.TrimPrefix(e.Response.GetOutcome().String(), "TOOL_OUTCOME_"))
		span.SetAttributes(spans.ToolOutcome.String(outcome))
		switch {
		case e.Response.GetIsError():
			spans.Fail(span, "tool_error", "") // its text is content
		case outcome != "done":
			spans.Fail(span, outcome, "")
		}
		if t.server.cfg.Content {
			span.SetAttributes(spans.ToolResult.String(content.Cut(e.Response.GetResult(), spans.MaxText)))
		}
	}
}
