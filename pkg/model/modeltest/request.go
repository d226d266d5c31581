package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Request is a valid request for a chat completion, or one of the Messages protocol
// translated to a chat completion.
type Request struct {
	// Model is the requested model; never empty.
	Model string
	// Messages in order; at least one.
	Messages []RequestMessage
	// Tools are the available tools.
	Tools []RequestTool
	// Stream requests server-sent events.
	Stream bool
	// IncludeUsage requests a last chunk with the usage.
	IncludeUsage bool
	// Protocol of the request: chat or messages.
	Protocol Protocol
	// MaxTokens is the most that the answer may have; in the Messages protocol only.
	MaxTokens int
	// CacheMarks are the places up to which the provider is to cache, such as
	// tools[1], system[0] and messages[2].content[1], in the order of the prompt; in the
	// Messages protocol only.
	CacheMarks []string
	// Thinking is the thinking of the request; in the Messages protocol only.
	Thinking RequestThinking

	responses responsesDetails
}

// Protocol is the protocol of a request.
type Protocol string

// The protocols that a Server speaks.
const (
	// ProtocolChat is that of OpenAI's chat completions.
	ProtocolChat Protocol = "chat"
	// ProtocolMessages is that of Anthropic's messages.
	ProtocolMessages Protocol = "messages"
	// ProtocolResponses is that of OpenAI's responses.
	ProtocolResponses Protocol = "responses"
)

// RequestMessage is one message of a Request.
type RequestMessage struct {
	// Role is system, developer, user, assistant or tool.
	Role string
	// Content is the text; empty where it was null or absent.
	Content string
	// HasContent reports whether the content was neither null nor absent.
	HasContent bool
	// ToolCalls of an assistant message.
	ToolCalls []Call
	// ToolCallID of a tool message.
	ToolCallID string
	// IsError of a tool message; in the Messages protocol only.
	IsError bool
	// Media are the images and documents of the message, in order.
	Media []RequestMedia
}

// RequestMedia is an image or a document of a RequestMessage.
type RequestMedia struct {
	// Type is the media type, such as image/png.
	Type string
	// Name of a document; may be empty.
	Name string
	// Data are the decoded bytes.
	Data []byte
}

// RequestTool is one available tool.
type RequestTool struct {
	// Name of the function.
	Name string
	// Description as the model reads it.
	Description string
	// Parameters is the JSON Schema of the arguments.
	Parameters json.RawMessage
}

// Call is a tool call, in a request or in a reply.
type Call struct {
	// ID of the call; a reply without one gets call_<n>.
	ID string
	// Name of the function.
	Name string
	// Arguments as text, which may be invalid JSON.
	Arguments string
}

// maxCallID is the length from which the service refuses the id of a call.
const maxCallID = 40

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// object is a JSON object whose members are not decoded yet.
type object map[string]json.RawMessage

// ParseRequest validates the body of a chat-completion request as the real
// service does. The error is the text of its 400.
func ParseRequest(body []byte) (*Request, error) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("we could not parse the JSON body of your request: %w", err)
	}
	if err := o.only("", "model", "messages", "tools", "stream", "stream_options"); err != nil {
		return nil, err
	}
	r := &Request{Protocol: ProtocolChat}
	if err := o.text("model", &r.Model); err != nil || r.Model == "" {
		return nil, fmt.Errorf("you must provide a model parameter")
	}
	if raw, ok := o["stream"]; ok {
		if err := json.Unmarshal(raw, &r.Stream); err != nil {
			return nil, fmt.Errorf("invalid type for 'stream': expected a boolean")
		}
	}
	if raw, ok := o["stream_options"]; ok {
		if err := parseStreamOptions(raw, r); err != nil {
			return nil, err
		}
	}
	var messages []object
	if err := json.Unmarshal(o["messages"], &messages); err != nil || len(messages) == 0 {
		return nil, fmt.Errorf("invalid 'messages': expected a non-empty array")
	}
	for i, m := range messages {
		message, err := parseMessage(m, fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, err
		}
		r.Messages = append(r.Messages, message)
	}
	if err := checkPairing(r.Messages); err != nil {
		return nil, err
	}
	if raw, ok := o["tools"]; ok {
		tools, err := parseTools(raw)
		if err != nil {
			return nil, err
		}
		r.Tools = tools
	}
	return r, nil
}

func parseStreamOptions(raw json.RawMessage, r *Request) error {
	if !r.Stream {
		return fmt.Errorf("the 'stream_options' parameter is only allowed when 'stream' is enabled")
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return fmt.Errorf("invalid type for 'stream_options': expected an object")
	}
	if err := o.only("stream_options.", "include_usage"); err != nil {
		return err
	}
	if usage, ok := o["include_usage"]; ok {
		if err := json.Unmarshal(usage, &r.IncludeUsage); err != nil {
			return fmt.Errorf("invalid type for 'stream_options.include_usage': expected a boolean")
		}
	}
	return nil
}

func parseMessage(o object, at string) (RequestMessage, error) {
	var m RequestMessage
	if err := o.text("role", &m.Role); err != nil {
		return m, fmt.Errorf("invalid '%s.role': %w", at, err)
	}
	fields := map[string][]string{
		"system":    {"role", "content", "name"},
		"developer": {"role", "content", "name"},
		"user":      {"role", "content", "name"},
		"assistant": {"role", "content", "name", "refusal", "tool_calls"},
		"tool":      {"role", "content", "tool_call_id"},
	}
	known, ok := fields[m.Role]
	if !ok {
		return m, fmt.Errorf("invalid value %q for '%s.role'", m.Role, at)
	}
	if err := o.only(at+".", known...); err != nil {
		return m, err
	}
	var err error
	if m.Content, m.HasContent, err = parseContent(o["content"]); err != nil {
		return m, fmt.Errorf("invalid '%s.content': %w", at, err)
	}
	if raw, ok := o["tool_calls"]; ok {
		if m.ToolCalls, err = parseCalls(raw, at+".tool_calls"); err != nil {
			return m, err
		}
	}
	if !m.HasContent && len(m.ToolCalls) == 0 {
		return m, fmt.Errorf("invalid value for '%s.content': expected a string, got null", at)
	}
	if m.Role == "tool" {
		if err := o.text("tool_call_id", &m.ToolCallID); err != nil || m.ToolCallID == "" {
			return m, fmt.Errorf("missing required parameter: '%s.tool_call_id'", at)
		}
	}
	return m, nil
}

func parseContent(raw json.RawMessage) (text string, has bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", false, nil
	}
	if err := json.Unmarshal(raw, &text); err == nil {
		return text, true, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		return "", false, fmt.Errorf("expected a string or an array of parts")
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return "", false, fmt.Errorf("expected parts of type text")
		}
		b.WriteString(*p.Text)
	}
	return b.String(), true, nil
}

func parseCalls(raw json.RawMessage, at string) ([]Call, error) {
	var list []object
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("invalid type for '%s': expected an array", at)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("invalid '%s': empty array. Expected an array with minimum length 1", at)
	}
	var calls []Call
	seen := map[string]bool{}
	for i, o := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		if err := o.only(at+".", "id", "type", "function"); err != nil {
			return nil, err
		}
		var c Call
		var kind string
		if err := o.text("id", &c.ID); err != nil || c.ID == "" {
			return nil, fmt.Errorf("missing required parameter: '%s.id'", at)
		}
		if len(c.ID) > maxCallID {
			return nil, fmt.Errorf("invalid '%s.id': string too long. Expected a string with maximum length %d", at, maxCallID)
		}
		if seen[c.ID] {
			return nil, fmt.Errorf("duplicate value for '%s.id': %q", at, c.ID)
		}
		seen[c.ID] = true
		if err := o.text("type", &kind); err != nil || kind != "function" {
			return nil, fmt.Errorf("invalid '%s.type': expected \"function\"", at)
		}
		var f object
		if err := json.Unmarshal(o["function"], &f); err != nil {
			return nil, fmt.Errorf("missing required parameter: '%s.function'", at)
		}
		if err := f.only(at+".function.", "name", "arguments"); err != nil {
			return nil, err
		}
		if err := f.text("name", &c.Name); err != nil || !functionName.MatchString(c.Name) {
			return nil, fmt.Errorf("invalid '%s.function.name': string does not match pattern", at)
		}
		if err := f.text("arguments", &c.Arguments); err != nil {
			return nil, fmt.Errorf("invalid type for '%s.function.arguments': expected a string", at)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// checkPairing checks that each call has exactly one result, directly after the
// message with the call, and that there are no other results.
func checkPairing(messages []RequestMessage) error {
	open := map[string]bool{}
	allowed := false
	for i, m := range messages {
		if m.Role == "tool" {
			if !allowed {
				return fmt.Errorf("invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls' (messages[%d])", i)
			}
			if !open[m.ToolCallID] {
				return fmt.Errorf("invalid parameter: 'tool_call_id' of %q not found in 'tool_calls' of previous message, or answered twice (messages[%d])", m.ToolCallID, i)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if err := unanswered(open, i-1); err != nil {
			return err
		}
		allowed = len(m.ToolCalls) > 0
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	return unanswered(open, len(messages)-1)
}

func unanswered(open map[string]bool, at int) error {
	for id := range open {
		return fmt.Errorf("an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. %q did not have a response message (before messages[%d])", id, at+1)
	}
	return nil
}

func parseTools(raw json.RawMessage) ([]RequestTool, error) {
	var list []object
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("invalid 'tools': expected an array with minimum length 1")
	}
	var tools []RequestTool
	seen := map[string]bool{}
	for i, o := range list {
		at := fmt.Sprintf("tools[%d]", i)
		if err := o.only(at+".", "type", "function"); err != nil {
			return nil, err
		}
		var kind string
		if err := o.text("type", &kind); err != nil || kind != "function" {
			return nil, fmt.Errorf("invalid '%s.type': expected \"function\"", at)
		}
		var f object
		if err := json.Unmarshal(o["function"], &f); err != nil {
			return nil, fmt.Errorf("missing required parameter: '%s.function'", at)
		}
		if err := f.only(at+".function.", "name", "description", "parameters"); err != nil {
			return nil, err
		}
		var t RequestTool
		if err := f.text("name", &t.Name); err != nil || !functionName.MatchString(t.Name) {
			return nil, fmt.Errorf("invalid '%s.function.name': string does not match pattern", at)
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("invalid '%s.function.name': %q is there twice", at, t.Name)
		}
		seen[t.Name] = true
		if raw, ok := f["description"]; ok && json.Unmarshal(raw, &t.Description) != nil {
			return nil, fmt.Errorf("invalid type for '%s.function.description': expected a string", at)
		}
		if err := checkSchema(f["parameters"]); err != nil {
			return nil, fmt.Errorf("invalid schema for function %q: %w", t.Name, err)
		}
		t.Parameters = f["parameters"]
		tools = append(tools, t)
	}
	return tools, nil
}

func checkSchema(raw json.RawMessage) error {
	var schema object
	if len(raw) == 0 || json.Unmarshal(raw, &schema) != nil || schema == nil {
		return fmt.Errorf("expected an object with the schema of the parameters")
	}
	var kind string
	if err := schema.text("type", &kind); err != nil || kind != "object" {
		return fmt.Errorf("schema must have type 'object', got 'type: %s'", schema["type"])
	}
	var properties object
	if json.Unmarshal(schema["properties"], &properties) != nil || properties == nil {
		return fmt.Errorf("object schema missing properties")
	}
	return nil
}

// only refuses members that are not in known.
func (o object) only(at string, known ...string) error {
next:
	for name := range o {
		for _, k := range known {
			if name == k {
				continue next
			}
		}
		return fmt.Errorf("unknown parameter: '%s%s'", at, name)
	}
	return nil
}

// text decodes a member that must be a string.
func (o object) text(name string, into *string) error {
	raw, ok := o[name]
	if !ok {
		return fmt.Errorf("%q is missing", name)
	}
	if string(raw) == "null" {
		return fmt.Errorf("%q is null", name)
	}
	return json.Unmarshal(raw, into)
}
