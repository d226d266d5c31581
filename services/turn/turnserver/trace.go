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

// chatSpan begins the span of one try at a model.
func (t *working) chatSpan(ctx context.Context, p *opened, ref string, request *model.Request, try uint32) (context.Context, trace.Span) {
	return spans.Start(ctx, spans.Chat+" "+spans.ModelName(ref), trace.SpanKindClient, func() []attribute.KeyValue {
		attributes := append(spans.RunAttributes(t.run),
			spans.OperationName.String(spans.Chat), spans.ProviderName.String(spans.Provider(ref)), spans.RequestModel.String(spans.ModelName(ref)),
			spans.RequestStream.Bool(request.Streaming), spans.TurnNumber.Int(int(t.p.Number)), spans.Try.Int(int(try)))
		if t.w.cfg.Content {
			attributes = append(attributes, spans.InputMessages.String(said(request.Messages)))
		}
		return attributes
	})
}

// answered says on a span how a try at a model ended.
func (t *working) answered(ctx context.Context, span trace.Span, ref string, r *model.Response, err error) {
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
	if cost := t.w.cfg.Price(ref, r); cost > 0 {
		span.SetAttributes(spans.CostMicroUSD.Int64(int64(cost))) //nolint:gosec // far below
	}
	if n := r.CacheWriteTokens; n > 0 {
		span.SetAttributes(spans.CacheWriteTokens.Int64(int64(n))) //nolint:gosec // far below
	}
	span.SetAttributes(spans.FinishReasons.StringSlice([]string{r.FinishReason}))
	if r.Model != "" {
		span.SetAttributes(spans.ResponseModel.String(r.Model))
	}
	if t.w.cfg.Content {
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

// execute sends a call, as a span.
func (t *working) execute(ctx context.Context, c turn.Call, ledger string, fresh bool) finished {
	ctx, span := spans.Start(ctx, spans.ExecuteTool+" "+c.Tool, trace.SpanKindInternal, func() []attribute.KeyValue {
		attributes := append(spans.RunAttributes(t.run),
			spans.OperationName.String(spans.ExecuteTool), spans.ToolName.String(c.Tool), spans.ToolCallID.String(c.ID),
			spans.ToolType.String("function"), spans.TurnNumber.Int(int(t.p.Number)))
		if t.w.cfg.Content {
			attributes = append(attributes, spans.ToolArguments.String(content.Cut(content.Text(c.Arguments), contentText)))
		}
		return attributes
	})
	defer span.End()
	end := t.send(ctx, c, ledger, fresh)
	if !span.IsRecording() {
		return end
	}
	switch {
	case end.moved != nil:
		span.SetAttributes(spans.ToolOutcome.String("moved"))
	case end.err != nil:
		spans.Fail(span, "broken_off", end.err.Error())
	default:
		outcome := strings.ToLower(strings.TrimPrefix(end.response.GetOutcome().String(), "TOOL_OUTCOME_"))
		span.SetAttributes(spans.ToolOutcome.String(outcome))
		switch {
		case end.response.GetIsError():
			spans.Fail(span, "tool_error", "") // its text is content
		case outcome != "done":
			spans.Fail(span, outcome, "")
		}
		if t.w.cfg.Content {
			span.SetAttributes(spans.ToolResult.String(content.Cut(end.response.GetResult(), contentText)))
		}
	}
	return end
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
