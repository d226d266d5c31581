package openai

import (
	"encoding/json"
	"fmt"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// noParameters is the schema of a tool that has none.
const noParameters = `{"type":"object","properties":{}}`

// params is the body of the request. It fails on what a valid request never
// holds: a role that is not set, contents that are not inline, a schema that is
// not JSON.
func params(req *model.Request, name string) (sdk.ChatCompletionNewParams, error) {
	p := sdk.ChatCompletionNewParams{Model: name}
	for _, m := range req.Messages {
		message, err := messageParam(m)
		if err != nil {
			return p, invalid("message %d: %v", m.GetId(), err)
		}
		p.Messages = append(p.Messages, message)
	}
	for _, t := range req.Tools {
		tool, err := toolParam(t)
		if err != nil {
			return p, invalid("tool %s: %v", t.GetName(), err)
		}
		p.Tools = append(p.Tools, tool)
	}
	if req.Streaming {
		p.StreamOptions.IncludeUsage = sdk.Bool(true)
		p.SetExtraFields(map[string]any{"stream": true})
	}
	return p, nil
}

func messageParam(m *harnessv1.Message) (sdk.ChatCompletionMessageParamUnion, error) {
	var none sdk.ChatCompletionMessageParamUnion
	text, err := inline(m.GetContent())
	if err != nil {
		return none, err
	}
	switch m.GetRole() {
	case harnessv1.Role_ROLE_SYSTEM:
		return sdk.SystemMessage(text), nil
	case harnessv1.Role_ROLE_USER:
		return sdk.UserMessage(text), nil
	case harnessv1.Role_ROLE_TOOL:
		return sdk.ToolMessage(text, m.GetToolCallId()), nil
	case harnessv1.Role_ROLE_ASSISTANT:
		return assistantParam(m, text)
	default:
		return none, fmt.Errorf("role %s", m.GetRole())
	}
}

// assistantParam leaves the content out where there are only calls: the
// service wants null or nothing there, and some servers refuse an empty text.
func assistantParam(m *harnessv1.Message, text string) (sdk.ChatCompletionMessageParamUnion, error) {
	var a sdk.ChatCompletionAssistantMessageParam
	if text != "" || len(m.GetToolCalls()) == 0 {
		a.Content.OfString = param.NewOpt(text)
	}
	for _, c := range m.GetToolCalls() {
		arguments, err := inline(c.GetArguments())
		if err != nil {
			return sdk.ChatCompletionMessageParamUnion{}, err
		}
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: c.GetId(),
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: model.SendableName(c.GetName()), Arguments: model.SendableArguments(arguments),
				},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &a}, nil
}

// toolParam passes the schema on as it is written: its bytes are part of the
// prefix that the provider caches.
func toolParam(t *harnessv1.ToolSpec) (sdk.ChatCompletionToolUnionParam, error) {
	schema := t.GetParametersSchema()
	if schema == "" {
		schema = noParameters
	}
	if !json.Valid([]byte(schema)) {
		return sdk.ChatCompletionToolUnionParam{}, fmt.Errorf("its parameters schema is not JSON")
	}
	f := struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}{t.GetName(), t.GetDescription(), json.RawMessage(schema)}
	return sdk.ChatCompletionFunctionTool(param.Override[shared.FunctionDefinitionParam](f)), nil
}

func inline(c *harnessv1.Content) (string, error) {
	if c.GetBlob() != nil {
		return "", fmt.Errorf("content %s is not inline", c.GetBlob().GetDigest())
	}
	return c.GetInline(), nil
}

func invalid(format string, args ...any) *model.Error {
	return &model.Error{RetryAfter: -1, Message: "the request cannot be sent: " + fmt.Sprintf(format, args...)}
}
