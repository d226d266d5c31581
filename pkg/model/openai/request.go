package openai

import (
	"encoding/json"
	"errors"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// emptySchema is the schema of a tool without parameters.
const emptySchema = `{"type":"object","properties":{}}`

type chatRequest struct {
	Messages      []message      `json:"messages,omitempty"`
	Model         string         `json:"model"`
	Tools         []tool         `json:"tools,omitempty"`
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// message is a message of a request. A pointer tells a member that is left out
// from an empty one.
type message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID *string    `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// encode returns the body of a request. It fails on what a valid request does
// not have: an unset role, content that is not inline, a schema that is not
// JSON.
func encode(req *model.Request, name string) (any, error) {
	r := &chatRequest{Model: name}
	for _, m := range req.Messages {
		message, err := encodeMessage(m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", m.GetId(), err)
		}
		r.Messages = append(r.Messages, message)
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.GetName(), err)
		}
		r.Tools = append(r.Tools, tool)
	}
	if req.Streaming {
		r.Stream, r.StreamOptions = true, &streamOptions{IncludeUsage: true}
	}
	return r, nil
}

func encodeMessage(m *harnessv1.Message) (message, error) {
	text, err := adapter.Inline(m.GetContent())
	if err != nil {
		return message{}, err
	}
	switch m.GetRole() {
	case harnessv1.Role_ROLE_SYSTEM:
		return message{Role: "system", Content: &text}, nil
	case harnessv1.Role_ROLE_USER:
		return message{Role: "user", Content: &text}, nil
	case harnessv1.Role_ROLE_TOOL:
		id := m.GetToolCallId()
		return message{Role: "tool", Content: &text, ToolCallID: &id}, nil
	case harnessv1.Role_ROLE_ASSISTANT:
		return encodeAssistant(m, text)
	case harnessv1.Role_ROLE_UNSPECIFIED:
	}
	return message{}, fmt.Errorf("role %s", m.GetRole())
}

// encodeAssistant leaves out an empty content next to calls: the service wants
// null or nothing there, and some servers refuse an empty text.
func encodeAssistant(m *harnessv1.Message, text string) (message, error) {
	a := message{Role: "assistant"}
	if text != "" || len(m.GetToolCalls()) == 0 {
		a.Content = &text
	}
	for _, c := range m.GetToolCalls() {
		arguments, err := adapter.Inline(c.GetArguments())
		if err != nil {
			return message{}, err
		}
		a.ToolCalls = append(a.ToolCalls, toolCall{ID: c.GetId(), Type: "function", Function: functionCall{
			Name: model.SendableName(c.GetName()), Arguments: model.SendableArguments(arguments),
		}})
	}
	return a, nil
}

// encodeTool sends the schema as it is written: it is part of the prefix that
// the provider caches.
func encodeTool(t *harnessv1.ToolSpec) (tool, error) {
	schema := t.GetParametersSchema()
	if schema == "" {
		schema = emptySchema
	}
	if !json.Valid([]byte(schema)) {
		return tool{}, errors.New("its parameters schema is not JSON")
	}
	return tool{Type: "function", Function: function{Name: t.GetName(), Description: t.GetDescription(), Parameters: json.RawMessage(schema)}}, nil
}
