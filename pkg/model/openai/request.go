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

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
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

// encoder writes requests to one server.
type encoder struct {
	*body
	reasoning *Reasoning
	// bridged and shortIDs are the settings NoUserAfterResults and ShortCallIDs.
	bridged, shortIDs bool
}

// encode returns the body of a request. It fails on what a valid request does
// not have: an unset role, content or media that are not inline, a schema that is
// not JSON. The messages come first, so that a request begins with the former one.
func (c *Config) encode(req *model.Request, name string) (any, error) {
	e := &encoder{body: &body{}, reasoning: &c.Reasoning, bridged: c.NoUserAfterResults, shortIDs: c.ShortCallIDs}
	e.open('{')
	if err := e.messages(req.Messages); err != nil {
		return nil, err
	}
	e.member("model", name)
	if err := e.tools(req.Tools); err != nil {
		return nil, err
	}
	if req.Streaming {
		e.member("stream", true)
		if !c.NoStreamOptions && !req.Leaves(memberStreamOptions) {
			e.member(memberStreamOptions, streamOptions{IncludeUsage: true})
		}
	}
	c.settings(e.body, req, name)
	if err := e.format(req.Schema); err != nil {
		return nil, err
	}
	e.end('}')
	return &e.Body, e.err
}

// memberFormat is the member with the form of the answer.
const memberFormat = "response_format"

// responseFormat asks for an answer that fits a schema. It is not strict: a strict schema must
// require all that it names.
type responseFormat struct {
	Type   string       `json:"type"`
	Schema formatSchema `json:"json_schema"`
}

type formatSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// format writes the form of the answer, if it has a schema.
func (e *encoder) format(schema string) error {
	if schema == "" {
		return nil
	}
	raw, err := adapter.Schema(schema)
	if err != nil {
		return err
	}
	e.member(memberFormat, responseFormat{Type: "json_schema", Schema: formatSchema{Name: adapter.SchemaName, Schema: raw}})
	return nil
}

func (e *encoder) messages(messages []*harnessv1.Message) error {
	if len(messages) == 0 {
		return nil
	}
	e.name("messages")
	e.open('[')
	var shown []*harnessv1.Message // results whose media are not written yet
	var last harnessv1.Role        // of the message before
	for _, m := range messages {
		if m.GetRole() != harnessv1.Role_ROLE_TOOL {
			e.resultMedia(shown)
			if last == harnessv1.Role_ROLE_TOOL && len(shown) == 0 && m.GetRole() == harnessv1.Role_ROLE_USER {
				e.bridge()
			}
			shown = nil
		}
		if err := e.message(m); err != nil {
			return fmt.Errorf("message %d: %w", m.GetId(), err)
		}
		last = m.GetRole()
		if m.GetRole() == harnessv1.Role_ROLE_TOOL && len(mediaOf(m)) > 0 {
			shown = append(shown, m)
		}
	}
	e.resultMedia(shown)
	e.end(']')
	return nil
}

func (e *encoder) message(m *harnessv1.Message) error {
	text, err := adapter.Inline(m.GetContent())
	if err != nil {
		return err
	}
	if err := checkMedia(m); err != nil {
		return err
	}
	e.next()
	e.open('{')
	switch m.GetRole() {
	case harnessv1.Role_ROLE_SYSTEM:
		e.member("role", "system")
		e.member("content", text)
	case harnessv1.Role_ROLE_USER:
		e.member("role", "user")
		e.userContent(text, mediaOf(m))
	case harnessv1.Role_ROLE_TOOL:
		e.member("role", "tool")
		e.member("content", text)
		e.member("tool_call_id", e.callID(m.GetToolCallId()))
	case harnessv1.Role_ROLE_ASSISTANT:
		err = e.assistant(m, text)
	default:
		err = fmt.Errorf("role %s", m.GetRole())
	}
	e.end('}')
	return err
}

// assistant leaves out an empty content next to calls: the service expects
// null or nothing there, and some servers refuse an empty text.
func (e *encoder) assistant(m *harnessv1.Message, text string) error {
	e.member("role", "assistant")
	switch {
	case e.hasChunks(m):
		e.chunks(m, text)
	case text != "" || len(m.GetToolCalls()) == 0:
		e.member("content", text)
	}
	if err := e.calls(m); err != nil {
		return err
	}
	e.returned(m)
	return nil
}

func (e *encoder) calls(m *harnessv1.Message) error {
	calls := m.GetToolCalls()
	if len(calls) == 0 {
		return nil
	}
	extras := e.callExtras(m)
	e.name("tool_calls")
	e.open('[')
	for i, c := range calls {
		arguments, err := adapter.Inline(c.GetArguments())
		if err != nil {
			return err
		}
		e.next()
		e.open('{')
		e.member("id", e.callID(c.GetId()))
		e.member("type", "function")
		e.name("function")
		e.open('{')
		e.member("name", model.SendableName(c.GetName()))
		e.member("arguments", model.SendableArguments(arguments))
		e.end('}')
		if extra := extras[i]; extra != nil {
			e.members(extra)
		}
		e.end('}')
	}
	e.end(']')
	return nil
}

func (e *encoder) tools(specs []*harnessv1.ToolSpec) error {
	if len(specs) == 0 {
		return nil
	}
	e.name("tools")
	e.open('[')
	for _, t := range specs {
		tool, err := encodeTool(t)
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.GetName(), err)
		}
		e.next()
		e.value(tool)
	}
	e.end(']')
	return nil
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
