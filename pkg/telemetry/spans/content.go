package spans

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// Bounds of texts in spans, in bytes: of one text and of all messages together.
const (
	MaxText     = 2 << 10
	maxMessages = 16 << 10
)

// FailTry marks the span of a try at a model as failed.
func FailTry(ctx context.Context, span trace.Span, err *model.Error) {
	Fail(span, failureKind(ctx, err), err.Message)
}

// failureKind is one of few words for how a try failed: the HTTP status if there was one.
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

// part is a part of a message in the form of the conventions.
type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// Messages returns messages as JSON in the form of the conventions, the newest of them
// that have room.
func Messages(messages []*harnessv1.Message) string {
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	var out []json.RawMessage
	size := 0
	for _, m := range slices.Backward(messages) {
		text := content.Cut(content.Text(m.GetContent()), MaxText)
		made := message{Role: strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_"))}
		switch {
		case m.GetRole() == harnessv1.Role_ROLE_TOOL:
			made.Parts = append(made.Parts, part{Type: "tool_call_response", ID: m.GetToolCallId(), Response: text})
		case text != "":
			made.Parts = append(made.Parts, part{Type: "text", Content: text})
		}
		for _, c := range m.GetToolCalls() {
			made.Parts = append(made.Parts, part{Type: "tool_call", ID: c.GetId(), Name: c.GetName(), Arguments: content.Cut(content.Text(c.GetArguments()), MaxText)})
		}
		line, err := json.Marshal(made)
		if err != nil || size+len(line) > maxMessages {
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
