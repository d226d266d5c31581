package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxMarks is how many marks of the cache a request may have.
const maxMarks = 4

var (
	toolUseID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	toolUseName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// ParseMessagesRequest validates the body of a request of the Messages protocol as
// the real service does. The error is the text of its 400.
func ParseMessagesRequest(body []byte) (*Request, error) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("the request body is not valid JSON: %w", err)
	}
	for _, name := range []string{"temperature", "top_p", "top_k"} {
		if _, ok := o[name]; ok {
			return nil, fmt.Errorf("`%s` is deprecated for this model.", name) //nolint:staticcheck // the service's own words
		}
	}
	if err := o.extra("", "model", "max_tokens", "system", "messages", "tools", "stream", "thinking", "output_config"); err != nil {
		return nil, err
	}
	r := &Request{Protocol: ProtocolMessages}
	if err := o.text("model", &r.Model); err != nil || r.Model == "" {
		return nil, fmt.Errorf("model: Field required")
	}
	if raw, ok := o["max_tokens"]; !ok || json.Unmarshal(raw, &r.MaxTokens) != nil || r.MaxTokens < 1 {
		return nil, fmt.Errorf("max_tokens: Field required, an integer of at least 1")
	}
	if raw, ok := o["stream"]; ok {
		if err := json.Unmarshal(raw, &r.Stream); err != nil {
			return nil, fmt.Errorf("stream: Input should be a valid boolean")
		}
	}
	r.IncludeUsage = true
	if raw, ok := o["tools"]; ok {
		if err := r.messagesTools(raw); err != nil {
			return nil, err
		}
	}
	if raw, ok := o["system"]; ok {
		if err := r.messagesSystem(raw); err != nil {
			return nil, err
		}
	}
	if err := r.messagesTurns(o["messages"]); err != nil {
		return nil, err
	}
	if len(r.CacheMarks) > maxMarks {
		return nil, fmt.Errorf("A maximum of %d blocks with cache_control may be provided. Found %d", maxMarks, len(r.CacheMarks)) //nolint:staticcheck // the service's own words
	}
	if err := r.readThinking(o); err != nil {
		return nil, err
	}
	return r, nil
}

// extra refuses members that are not in known, in the words of the service.
func (o object) extra(at string, known ...string) error {
	for name := range o {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s%s: Extra inputs are not permitted", at, name)
		}
	}
	return nil
}

// mark notes a mark of the cache.
func (r *Request) mark(o object, at string) error {
	raw, ok := o["cache_control"]
	if !ok || string(raw) == "null" {
		return nil
	}
	var mark struct {
		Type string `json:"type"`
		TTL  string `json:"ttl"`
	}
	if json.Unmarshal(raw, &mark) != nil || mark.Type != "ephemeral" || !slices.Contains([]string{"", "5m", "1h"}, mark.TTL) {
		return fmt.Errorf("%s.cache_control: Input tag does not match any of the expected tags: 'ephemeral'", at)
	}
	r.CacheMarks = append(r.CacheMarks, at)
	return nil
}

func (r *Request) messagesTools(raw json.RawMessage) error {
	var list []object
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("tools: Input should be a valid list")
	}
	seen := map[string]bool{}
	for i, o := range list {
		at := fmt.Sprintf("tools[%d]", i)
		if err := o.extra(at+".", "name", "description", "input_schema", "cache_control", "type"); err != nil {
			return err
		}
		var t RequestTool
		if err := o.text("name", &t.Name); err != nil || !toolUseName.MatchString(t.Name) {
			return fmt.Errorf("%s.name: String should match pattern '%s'", at, toolUseName)
		}
		if seen[t.Name] {
			return fmt.Errorf("tools: Tool names must be unique")
		}
		seen[t.Name] = true
		if raw, ok := o["description"]; ok && json.Unmarshal(raw, &t.Description) != nil {
			return fmt.Errorf("%s.description: Input should be a valid string", at)
		}
		var schema object
		var kind string
		if json.Unmarshal(o["input_schema"], &schema) != nil || schema.text("type", &kind) != nil || kind != "object" {
			return fmt.Errorf("%s.input_schema.type: Input should be 'object'", at)
		}
		t.Parameters = o["input_schema"]
		if err := r.mark(o, at); err != nil {
			return err
		}
		r.Tools = append(r.Tools, t)
	}
	return nil
}

func (r *Request) messagesSystem(raw json.RawMessage) error {
	blocks, err := contentBlocks(raw, "system")
	if err != nil {
		return err
	}
	var texts []string
	for i, o := range blocks {
		at := fmt.Sprintf("system[%d]", i)
		text, err := r.textBlock(o, at)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	r.Messages = append(r.Messages, RequestMessage{Role: "system", Content: strings.Join(texts, "\n"), HasContent: true})
	return nil
}

// contentBlocks reads content, which is a text or a list of blocks.
func contentBlocks(raw json.RawMessage, at string) ([]object, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		block, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		return []object{{"type": json.RawMessage(`"text"`), "text": block}}, nil
	}
	var blocks []object
	if json.Unmarshal(raw, &blocks) != nil || len(blocks) == 0 {
		return nil, fmt.Errorf("%s: Input should be a valid string or a non-empty list of blocks", at)
	}
	return blocks, nil
}

func (r *Request) textBlock(o object, at string) (string, error) {
	var kind, text string
	if o.text("type", &kind) != nil || kind != "text" {
		return "", fmt.Errorf("%s.type: Input should be 'text'", at)
	}
	if err := o.extra(at+".", "type", "text", "cache_control"); err != nil {
		return "", err
	}
	if o.text("text", &text) != nil || strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("%s: text content blocks must be non-empty and contain non-whitespace text", at)
	}
	return text, r.mark(o, at)
}

// messagesTurns reads the messages: roles that alternate, from the user's to the
// user's, and results of all calls of an answer at the front of what follows it.
func (r *Request) messagesTurns(raw json.RawMessage) error {
	var list []object
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return fmt.Errorf("messages: at least one message is required")
	}
	open := map[string]bool{}
	last := "assistant"
	for i, o := range list {
		at := fmt.Sprintf("messages[%d]", i)
		if err := o.extra(at+".", "role", "content"); err != nil {
			return err
		}
		var role string
		if o.text("role", &role) != nil || role != "user" && role != "assistant" {
			return fmt.Errorf("%s.role: Input should be 'user' or 'assistant'", at)
		}
		if role == last {
			return fmt.Errorf("%s: roles must alternate between \"user\" and \"assistant\", beginning with \"user\", but found two of %q", at, role)
		}
		last = role
		blocks, err := contentBlocks(o["content"], at+".content")
		if err != nil {
			return err
		}
		if role == "user" {
			err = r.userTurn(blocks, at, open)
		} else {
			err = r.assistantTurn(blocks, at, open)
		}
		if err != nil {
			return err
		}
	}
	if last != "user" {
		return fmt.Errorf("this model does not support assistant message prefill. The conversation must end with a user message")
	}
	return nil
}

func (r *Request) userTurn(blocks []object, at string, open map[string]bool) error {
	texts := false // or media
	for i, o := range blocks {
		at := fmt.Sprintf("%s.content[%d]", at, i)
		kind := blockType(o)
		if !slices.Contains([]string{"text", "image", "document", "tool_result"}, kind) {
			return fmt.Errorf("%s.type: Input should be 'text', 'image', 'document' or 'tool_result' in a message of the user", at)
		}
		if kind != "tool_result" {
			if len(open) > 0 {
				return missingResult(open, at)
			}
			if err := r.userBlock(o, at, texts); err != nil {
				return err
			}
			texts = true
			continue
		}
		if texts {
			return fmt.Errorf("%s: tool_result blocks must come first in the content", at)
		}
		if err := r.result(o, at, open); err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return missingResult(open, at)
	}
	return nil
}

// userBlock reads a text of the user, or media, which belong to the text before them.
func (r *Request) userBlock(o object, at string, follows bool) error {
	if blockType(o) == "text" {
		text, err := r.textBlock(o, at)
		r.Messages = append(r.Messages, RequestMessage{Role: "user", Content: text, HasContent: true})
		return err
	}
	media, err := r.mediaBlock(o, at)
	if !follows {
		r.Messages = append(r.Messages, RequestMessage{Role: "user"})
	}
	m := &r.Messages[len(r.Messages)-1]
	m.Media = append(m.Media, media)
	return err
}

func (r *Request) result(o object, at string, open map[string]bool) error {
	if err := o.extra(at+".", "type", "tool_use_id", "content", "is_error", "cache_control"); err != nil {
		return err
	}
	m := RequestMessage{Role: "tool"}
	if o.text("tool_use_id", &m.ToolCallID) != nil || !open[m.ToolCallID] {
		return fmt.Errorf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %q. Each `tool_result` block must have a corresponding `tool_use` block in the previous message", at, m.ToolCallID)
	}
	delete(open, m.ToolCallID)
	if raw, ok := o["is_error"]; ok && json.Unmarshal(raw, &m.IsError) != nil {
		return fmt.Errorf("%s.is_error: Input should be a valid boolean", at)
	}
	if raw, ok := o["content"]; ok {
		blocks, err := contentBlocks(raw, at+".content")
		if err != nil {
			return err
		}
		for i, b := range blocks {
			if err := r.resultBlock(&m, b, fmt.Sprintf("%s.content[%d]", at, i)); err != nil {
				return err
			}
		}
	}
	if m.IsError && !m.HasContent {
		return fmt.Errorf("%s: content cannot be empty if `is_error` is true", at)
	}
	r.Messages = append(r.Messages, m)
	return r.mark(o, at)
}

// resultBlock reads a block of a result: a text, or media in one that is no error.
func (r *Request) resultBlock(m *RequestMessage, o object, at string) error {
	if kind := blockType(o); kind != "image" && kind != "document" {
		text, err := r.textBlock(o, at)
		m.Content, m.HasContent = m.Content+text, true
		return err
	}
	if m.IsError {
		return fmt.Errorf("%s: all content must be type `text` if `is_error` is true", at)
	}
	media, err := r.mediaBlock(o, at)
	m.Media, m.HasContent = append(m.Media, media), true
	return err
}

func missingResult(open map[string]bool, at string) error {
	for id := range open {
		return fmt.Errorf("%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s", at, id)
	}
	return nil
}

func (r *Request) assistantTurn(blocks []object, at string, open map[string]bool) error {
	m := RequestMessage{Role: "assistant"}
	for i, o := range blocks {
		at := fmt.Sprintf("%s.content[%d]", at, i)
		kind := blockType(o)
		if isThinking(o) {
			if err := thinkingBlock(o, at); err != nil {
				return err
			}
			if i == len(blocks)-1 {
				return fmt.Errorf("%s: The final block in an assistant message cannot be `%s`.", at, kind) //nolint:staticcheck // the service's own words
			}
			continue
		}
		if kind != "text" && kind != "tool_use" {
			return fmt.Errorf("%s.type: Input should be 'text', 'thinking', 'redacted_thinking' or 'tool_use' in a message of the assistant", at)
		}
		if kind == "text" {
			text, err := r.textBlock(o, at)
			if err != nil {
				return err
			}
			m.Content, m.HasContent = m.Content+text, true
			continue
		}
		if err := o.extra(at+".", "type", "id", "name", "input", "cache_control"); err != nil {
			return err
		}
		var c Call
		var input object
		switch {
		case o.text("id", &c.ID) != nil || !toolUseID.MatchString(c.ID):
			return fmt.Errorf("%s.id: String should match pattern '%s'", at, toolUseID)
		case open[c.ID]:
			return fmt.Errorf("%s.id: `tool_use` ids must be unique", at)
		case o.text("name", &c.Name) != nil || !toolUseName.MatchString(c.Name):
			return fmt.Errorf("%s.name: String should match pattern '%s'", at, toolUseName)
		case json.Unmarshal(o["input"], &input) != nil || input == nil:
			return fmt.Errorf("%s.input: Input should be a valid dictionary", at)
		}
		c.Arguments, open[c.ID] = string(o["input"]), true
		m.ToolCalls = append(m.ToolCalls, c)
		if err := r.mark(o, at); err != nil {
			return err
		}
	}
	r.Messages = append(r.Messages, m)
	return nil
}
