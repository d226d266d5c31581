package responses

import (
	"encoding/json"
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// emptySchema is the schema of a tool without parameters.
const emptySchema = `{"type":"object","properties":{}}`

// includeEncrypted requests reasoning that only the service can read.
const includeEncrypted = "reasoning.encrypted_content"

// members are those that the provider sends, in their order, with the additional ones
// before the input.
var members = []string{"model", "instructions", "tools", "store", "include", "reasoning", "max_output_tokens", memberCacheKey, "stream", "input"}

// minOutput is the smallest max_output_tokens that the service takes.
const minOutput = 16

// member is a member of a request.
type member struct {
	name  string
	value any
}

// encoder encodes requests.
type encoder struct {
	efforts func(model string) []harnessv1.Effort
	reasons func(model string) bool
	extra   []member
}

// tool is a function. Strict is sent although it is false: without it the service makes
// schemas strict, and optional parameters come filled.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

const (
	// memberText is the member with the form of the answer.
	memberText = "text"
	// memberCacheKey is the member with the key of the cache.
	memberCacheKey = "prompt_cache_key"
	// memberEffort is the effort within the member reasoning.
	memberEffort = "reasoning.effort"
)

// optional are the members that servers refuse and that a request can be without.
func (e *encoder) optional() []adapter.Optional {
	return []adapter.Optional{
		{
			Member: memberCacheKey, Words: []string{memberCacheKey},
			Sent: func(req *model.Request, _ string) bool { return req.CacheKey != "" },
		},
		{
			Member: memberEffort, Words: []string{memberEffort, "reasoning_effort"}, Common: []string{"effort"}, Setting: "efforts: [] of the model",
			Sent: func(req *model.Request, name string) bool {
				return (e.reasons == nil || e.reasons(name)) && req.Effort != harnessv1.Effort_EFFORT_UNSPECIFIED
			},
		},
	}
}

type textOptions struct {
	Format textFormat `json:"format"`
}

// textFormat asks for an answer that fits a schema. It is not strict: a strict schema must
// require all that it names.
type textFormat struct {
	Type   string          `json:"type"`
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

type reasoningOptions struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// encode returns the body of a request. It fails on what a valid request does not have:
// an unset role, content that is not inline, media of an unknown type, a schema that is
// not JSON.
func (e *encoder) encode(req *model.Request, name string) (any, error) {
	head, messages, err := e.head(req, name)
	if err != nil {
		return nil, err
	}
	b := newBody()
	for _, m := range head {
		if err := b.member(m.name, m.value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	b.openInput()
	for _, m := range messages {
		if err := b.message(m); err != nil {
			return nil, fmt.Errorf("message %d: %w", m.GetId(), err)
		}
	}
	return b.end(), nil
}

// head returns the members before the input, and the messages that are the input.
func (e *encoder) head(req *model.Request, name string) ([]member, []*harnessv1.Message, error) {
	messages := req.Messages
	head := []member{{"model", name}}
	if len(messages) > 0 && messages[0].GetRole() == harnessv1.Role_ROLE_SYSTEM {
		text, err := adapter.Inline(messages[0].GetContent())
		if err != nil {
			return nil, nil, fmt.Errorf("message %d: %w", messages[0].GetId(), err)
		}
		if messages = messages[1:]; text != "" {
			head = append(head, member{"instructions", text})
		}
	}
	tools, err := encodeTools(req.Tools)
	if err != nil {
		return nil, nil, err
	}
	if len(tools) > 0 {
		head = append(head, member{"tools", tools})
	}
	head = append(head, member{"store", false})
	head = append(head, e.reasoning(req, name)...)
	if req.MaxOutputTokens > 0 {
		head = append(head, member{"max_output_tokens", max(req.MaxOutputTokens, minOutput)})
	}
	if req.CacheKey != "" && !req.Leaves(memberCacheKey) {
		head = append(head, member{memberCacheKey, req.CacheKey})
	}
	if req.Streaming {
		head = append(head, member{"stream", true})
	}
	if req.Schema != "" {
		schema, err := adapter.Schema(req.Schema)
		if err != nil {
			return nil, nil, err
		}
		head = append(head, member{memberText, textOptions{textFormat{Type: "json_schema", Name: adapter.SchemaName, Schema: schema}}})
	}
	return append(head, e.extra...), messages, nil
}

// reasoning returns the members about reasoning. A model that does not reason gets none:
// the service refuses them.
func (e *encoder) reasoning(req *model.Request, name string) []member {
	if e.reasons != nil && !e.reasons(name) {
		return nil
	}
	var list []member
	if req.Adjusted(harnessv1.Adjustment_ADJUSTMENT_NO_ENCRYPTED) == nil {
		list = append(list, member{"include", []string{includeEncrypted}})
	}
	var efforts []harnessv1.Effort
	if e.efforts != nil {
		efforts = e.efforts(name)
	}
	effort := model.NearestEffort(efforts, req.Effort)
	var r reasoningOptions
	if effort != harnessv1.Effort_EFFORT_UNSPECIFIED && !req.Leaves(memberEffort) {
		r.Effort = strings.ToLower(strings.TrimPrefix(effort.String(), "EFFORT_"))
	}
	if req.ShowReasoning && effort != harnessv1.Effort_EFFORT_NONE && req.Adjusted(harnessv1.Adjustment_ADJUSTMENT_NO_SUMMARY) == nil {
		r.Summary = "auto"
	}
	if r != (reasoningOptions{}) {
		list = append(list, member{"reasoning", r})
	}
	return list
}

// encodeTools sends each schema as it is written: it is part of the prefix that the
// provider caches.
func encodeTools(specs []*harnessv1.ToolSpec) ([]tool, error) {
	tools := make([]tool, 0, len(specs))
	for _, t := range specs {
		schema := t.GetParametersSchema()
		if schema == "" {
			schema = emptySchema
		}
		if !json.Valid([]byte(schema)) {
			return nil, fmt.Errorf("tool %s: its parameters schema is not JSON", t.GetName())
		}
		tools = append(tools, tool{Type: "function", Name: t.GetName(), Description: t.GetDescription(), Parameters: json.RawMessage(schema)})
	}
	return tools, nil
}
