package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
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
	// MaxTokens is the most that the answer may have; 0 if the request sets none. Not in
	// the chat protocol.
	MaxTokens int
	// CacheMarks are the places up to which the provider is to cache, such as
	// tools[1], system[0] and messages[2].content[1], in the order of the prompt; in the
	// Messages protocol only.
	CacheMarks []string
	// Thinking is the thinking of the request; in the Messages protocol only.
	Thinking RequestThinking
	// Schema is the JSON Schema of the answer; nil if the request has none.
	Schema json.RawMessage
	// Returned counts what has come back with the answers; in the chat protocol only.
	Returned ReturnCount

	number    int // of the reply, from 0
	responses responsesDetails
	counter   *counter // nil: nothing is remembered
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

	reasoning json.RawMessage // what came back in the server's member; nil: absent
	extra     json.RawMessage // extra_content of the first call, or of the message
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
func ParseRequest(body []byte) (*Request, error) { return (&Temper{}).parse(body) }

// parse validates the body of a request to a server of a temper.
func (t *Temper) parse(body []byte) (*Request, error) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("we could not parse the JSON body of your request: %w", err)
	}
	known := append([]string{"model", "messages", "tools", "stream"}, t.Members...)
	if !t.NoSchema {
		known = append(known, "response_format")
	}
	if !t.NoStreamOptions {
		known = append(known, "stream_options")
	}
	if err := t.only(o, "", "", known...); err != nil {
		return nil, err
	}
	r := &Request{Protocol: ProtocolChat, IncludeUsage: t.NoStreamOptions}
	if err := o.text("model", &r.Model); err != nil || r.Model == "" {
		return nil, fmt.Errorf("you must provide a model parameter")
	}
	if raw, ok := o["stream"]; ok {
		if err := json.Unmarshal(raw, &r.Stream); err != nil {
			return nil, fmt.Errorf("invalid type for 'stream': expected a boolean")
		}
	}
	if raw, ok := o["stream_options"]; ok {
		if err := t.parseStreamOptions(raw, r); err != nil {
			return nil, err
		}
	}
	if err := r.chatFormat(o); err != nil {
		return nil, err
	}
	var messages []object
	if err := json.Unmarshal(o["messages"], &messages); err != nil || len(messages) == 0 {
		return nil, fmt.Errorf("invalid 'messages': expected a non-empty array")
	}
	for i, m := range messages {
		message, err := t.parseMessage(m, fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, err
		}
		r.Messages = append(r.Messages, message)
	}
	if err := t.checkStrict(r.Messages); err != nil {
		return nil, err
	}
	if err := checkPairing(r.Messages); err != nil {
		return nil, err
	}
	if raw, ok := o["tools"]; ok {
		tools, err := t.parseTools(raw)
		if err != nil {
			return nil, err
		}
		r.Tools = tools
	}
	return r, nil
}

func (t *Temper) parseStreamOptions(raw json.RawMessage, r *Request) error {
	if !r.Stream {
		return fmt.Errorf("the 'stream_options' parameter is only allowed when 'stream' is enabled")
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return fmt.Errorf("invalid type for 'stream_options': expected an object")
	}
	if err := t.only(o, "stream_options.", "", "include_usage"); err != nil {
		return err
	}
	if usage, ok := o["include_usage"]; ok {
		if err := json.Unmarshal(usage, &r.IncludeUsage); err != nil {
			return fmt.Errorf("invalid type for 'stream_options.include_usage': expected a boolean")
		}
	}
	return nil
}

func (t *Temper) parseMessage(o object, at string) (RequestMessage, error) {
	var m RequestMessage
	if err := o.text("role", &m.Role); err != nil {
		return m, fmt.Errorf("invalid '%s.role': %w", at, err)
	}
	fields := map[string][]string{
		"system":    {"role", "content", "name"},
		"developer": {"role", "content", "name"},
		"user":      {"role", "content", "name"},
		"assistant": append([]string{"role", "content", "name", "refusal", "tool_calls"}, t.messageMembers()...),
		"tool":      {"role", "content", "tool_call_id"},
	}
	known, ok := fields[m.Role]
	if !ok {
		return m, fmt.Errorf("invalid value %q for '%s.role'", m.Role, at)
	}
	if err := t.only(o, at+".", m.Role, known...); err != nil {
		return m, err
	}
	if err := t.parseContent(o["content"], &m); err != nil {
		return m, fmt.Errorf("invalid '%s.content': %w", at, err)
	}
	if m.Role == "assistant" {
		if err := t.parseAssistant(o, at, &m); err != nil {
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

// parseCalls reads the calls of a message and the extra_content of the first one.
func (t *Temper) parseCalls(raw json.RawMessage, at string) (calls []Call, extra json.RawMessage, err error) {
	var list []object
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, nil, fmt.Errorf("invalid type for '%s': expected an array", at)
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("invalid '%s': empty array. Expected an array with minimum length 1", at)
	}
	seen := map[string]bool{}
	for i, o := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		if err := t.only(o, at+".", "", append([]string{"id", "type", "function"}, t.callMembers()...)...); err != nil {
			return nil, nil, err
		}
		var c Call
		var kind string
		if err := o.text("id", &c.ID); err != nil || c.ID == "" {
			return nil, nil, fmt.Errorf("missing required parameter: '%s.id'", at)
		}
		if len(c.ID) > maxCallID {
			return nil, nil, fmt.Errorf("invalid '%s.id': string too long. Expected a string with maximum length %d", at, maxCallID)
		}
		if seen[c.ID] {
			return nil, nil, fmt.Errorf("duplicate value for '%s.id': %q", at, c.ID)
		}
		seen[c.ID] = true
		if err := o.text("type", &kind); err != nil || kind != "function" {
			return nil, nil, fmt.Errorf("invalid '%s.type': expected \"function\"", at)
		}
		var f object
		if err := json.Unmarshal(o["function"], &f); err != nil {
			return nil, nil, fmt.Errorf("missing required parameter: '%s.function'", at)
		}
		if err := t.only(f, at+".function.", "", "name", "arguments"); err != nil {
			return nil, nil, err
		}
		if err := f.text("name", &c.Name); err != nil || !functionName.MatchString(c.Name) {
			return nil, nil, fmt.Errorf("invalid '%s.function.name': string does not match pattern", at)
		}
		if err := f.text("arguments", &c.Arguments); err != nil {
			return nil, nil, fmt.Errorf("invalid type for '%s.function.arguments': expected a string", at)
		}
		if i == 0 && o[memberExtra] != nil {
			extra = compact(o[memberExtra], false)
		}
		calls = append(calls, c)
	}
	return calls, extra, nil
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

func (t *Temper) parseTools(raw json.RawMessage) ([]RequestTool, error) {
	var list []object
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("invalid 'tools': expected an array with minimum length 1")
	}
	var tools []RequestTool
	seen := map[string]bool{}
	for i, o := range list {
		at := fmt.Sprintf("tools[%d]", i)
		if err := t.only(o, at+".", "", "type", "function"); err != nil {
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
		if err := t.only(f, at+".function.", "", "name", "description", "parameters"); err != nil {
			return nil, err
		}
		var tool RequestTool
		if err := f.text("name", &tool.Name); err != nil || !functionName.MatchString(tool.Name) {
			return nil, fmt.Errorf("invalid '%s.function.name': string does not match pattern", at)
		}
		if seen[tool.Name] {
			return nil, fmt.Errorf("invalid '%s.function.name': %q is there twice", at, tool.Name)
		}
		seen[tool.Name] = true
		if raw, ok := f["description"]; ok && json.Unmarshal(raw, &tool.Description) != nil {
			return nil, fmt.Errorf("invalid type for '%s.function.description': expected a string", at)
		}
		if err := checkSchema(f["parameters"]); err != nil {
			return nil, fmt.Errorf("invalid schema for function %q: %w", tool.Name, err)
		}
		tool.Parameters = f["parameters"]
		tools = append(tools, tool)
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
