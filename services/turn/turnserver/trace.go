package turnserver

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// Bounds of what spans hold of texts, in bytes: of one text and of all messages together.
const (
	contentText     = 2 << 10
	contentMessages = 16 << 10
)

// startModelSpan starts the span of one try at a model.
func (t *execution) startModelSpan(ctx context.Context, a turn.AskModel) (context.Context, trace.Span) {
	return spans.Start(ctx, spans.Chat+" "+spans.ModelName(a.Ref), trace.SpanKindClient, func() []attribute.KeyValue {
		attributes := append(spans.RunAttributes(t.run),
			spans.OperationName.String(spans.Chat), spans.ProviderName.String(spans.Provider(a.Ref)), spans.RequestModel.String(spans.ModelName(a.Ref)),
			spans.RequestStream.Bool(t.request.Streaming), spans.TurnNumber.Int(int(t.progress.Number)), spans.Try.Int(int(a.Try)))
		if t.server.cfg.Content {
			attributes = append(attributes, spans.InputMessages.String(said(t.request.Messages)))
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
		failure := model.AsError(err)
		spans.Fail(span, failureKind(ctx, failure), failure.Message)
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
		span.SetAttributes(spans.OutputMessages.String(said([]*harnessv1.Message{{
			Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(r.Text), ToolCalls: r.ToolCalls,
		}})))
	}
}

// failureKind is one of few words for how a try failed: the HTTP status where there was one.
func failureKind(ctx context.Context, e *model.Error) string {
	switch {
	case ctx.Err() != nil:
		return "cancelled"
	case e.ContextExceeded:
		return "context_exceeded"
	case e.Status != 0:
		return strconv.Itoa(e.Status)
	case e.Retryable:
		return "unavailable"
	}
	return "_OTHER"
}

// deliverSpan delivers a call, as a span.
func (t *execution) deliverSpan(ctx context.Context, a turn.SendCall) turn.Event {
	ctx, span := spans.Start(ctx, spans.ExecuteTool+" "+a.Call.Tool, trace.SpanKindInternal, func() []attribute.KeyValue {
		attributes := append(spans.RunAttributes(t.run),
			spans.OperationName.String(spans.ExecuteTool), spans.ToolName.String(a.Call.Tool), spans.ToolCallID.String(a.Call.ID),
			spans.ToolType.String("function"), spans.TurnNumber.Int(int(t.progress.Number)))
		if t.server.cfg.Content {
			attributes = append(attributes, spans.ToolArguments.String(content.Cut(content.Text(a.Call.Arguments), contentText)))
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
			span.SetAttributes(spans.ToolResult.String(content.Cut(e.Response.GetResult(), contentText)))
		}
	}
}

// part is a part of a message, as the conventions have it.
type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// said are messages as JSON, the newest of them that have room.
func said(messages []*harnessv1.Message) string {
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	var out []json.RawMessage
	size := 0
	for _, m := range slices.Backward(messages) {
		text := content.Cut(content.Text(m.GetContent()), contentText)
		made := message{Role: strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_"))}
		switch {
		case m.GetRole() == harnessv1.Role_ROLE_TOOL:
			made.Parts = append(made.Parts, part{Type: "tool_call_response", ID: m.GetToolCallId(), Response: text})
		case text != "":
			made.Parts = append(made.Parts, part{Type: "text", Content: text})
		}
		for _, c := range m.GetToolCalls() {
			made.Parts = append(made.Parts, part{Type: "tool_call", ID: c.GetId(), Name: c.GetName(), Arguments: content.Cut(content.Text(c.GetArguments()), contentText)})
		}
		line, err := json.Marshal(made)
		if err != nil || size+len(line) > contentMessages {
			break
		}
		size += len(line)
		out = append(out, line)
	}
	slices.Reverse(out)
	text, err := json.Marshal(out)
	if err != nil {
		return "[]" // valid parts make a valid whole
	}
	return string(text)
}
