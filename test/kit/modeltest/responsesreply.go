package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// defaultSize is the least size of encrypted content, in bytes, unless a reply sets one.
const defaultSize = 32

// seal is what encrypted content says to the server.
type seal struct {
	// Organisation owns the reasoning, and Item is its id.
	Organisation, Item string
	// Led is the type of the item that the reasoning led to; empty if there is none.
	Led string
	// Filler brings the content to its size.
	Filler string `json:",omitempty"`
}

// encrypt returns encrypted content of at least size bytes.
func (s seal) encrypt(size int) string {
	encode := func() string { return base64.StdEncoding.EncodeToString(mustJSON(s)) }
	if size == 0 {
		size = defaultSize
	}
	if missing := size - len(encode()); missing > 0 { // base64 makes four bytes of three
		s.Filler = strings.Repeat("thought ", missing*3/4/len("thought ")+1)
	}
	return encode()
}

// decrypt reads encrypted content; ok reports whether a server made it.
func decrypt(encrypted string) (s seal, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(encrypted)
	return s, err == nil && json.Unmarshal(raw, &s) == nil && s.Organisation != "" && s.Item != ""
}

// responseOutput makes the items of a response.
type responseOutput struct {
	number       int // of the response
	organisation string
	request      *Request
	reply        Reply
}

// items returns the items of the whole response.
func (m *responseOutput) items() []map[string]any {
	parts := m.reply.parts()
	var items []map[string]any
	calls, reasoning := 0, ""
	for i, p := range parts {
		id := fmt.Sprintf("%d_%d", m.number, i)
		if reasoning != "" {
			id += "." + reasoning // an item with this id wants its reasoning back
		}
		switch {
		case p.Thinking != nil:
			reasoning = fmt.Sprintf("rs_%d_%d", m.number, i)
			items = append(items, m.reasoning(reasoning, p.Thinking, parts[i+1:]))
		case p.Call != nil:
			call := *p.Call
			if call.ID == "" {
				call.ID = fmt.Sprintf("call_%d", calls)
			}
			calls++
			items = append(items, map[string]any{"type": "function_call", "id": "fc_" + id, "call_id": call.ID, "name": call.Name,
				"arguments": m.reply.arguments(call.Arguments), "status": "completed"})
		default:
			item := map[string]any{"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
				"content": []any{map[string]any{"type": "output_text", "text": p.Text, "annotations": []any{}}}}
			if p.Phase != "" {
				item["phase"] = p.Phase
			}
			items = append(items, item)
		}
	}
	if m.reply.RefusalText != "" {
		items = append(items, map[string]any{"type": "message", "id": fmt.Sprintf("msg_%d_refusal", m.number), "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "refusal", "refusal": m.reply.RefusalText}}})
	}
	return items
}

func (m *responseOutput) reasoning(id string, t *Thinking, after []ReplyPart) map[string]any {
	item := map[string]any{"type": "reasoning", "id": id, "summary": m.summary(t)}
	if m.request.responses.encrypted {
		made := seal{Organisation: m.organisation, Item: id}
		for _, p := range after {
			if p.Thinking == nil {
				made.Led = map[bool]string{true: "function_call", false: "message"}[p.Call != nil]
				break
			}
		}
		item["encrypted_content"] = made.encrypt(t.Size)
	}
	return item
}

// summary returns the parts of a summary: the paragraphs of the text for people.
func (m *responseOutput) summary(t *Thinking) []any {
	parts := []any{}
	if t.Text == "" || t.Redacted || !m.request.responses.summary {
		return parts
	}
	for text := range strings.SplitSeq(t.Text, "\n\n") {
		parts = append(parts, map[string]any{"type": "summary_text", "text": text})
	}
	return parts
}

func (m *responseOutput) response(model, status string, items any) map[string]any {
	r := map[string]any{
		"id": fmt.Sprintf("resp_%d", m.number), "object": "response", "created_at": 1, "model": model, "status": status,
		"error": nil, "incomplete_details": nil, "output": items, "store": false, "usage": nil,
	}
	if u := m.reply.Usage; u != nil && status != "in_progress" {
		r["usage"] = map[string]any{
			"input_tokens": u.Input, "input_tokens_details": map[string]any{"cached_tokens": u.Cached, "cache_write_tokens": u.Written},
			"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output,
		}
	}
	return r
}

func (m *responseOutput) ended(model string, items []map[string]any) map[string]any {
	switch reason := m.reply.finishReason(); {
	case m.reply.Fault == FaultFailed:
		r := m.response(model, "failed", []any{})
		r["error"] = m.fault()
		return r
	case m.reply.Fault == FaultNoFinish:
		return m.response(model, "in_progress", items)
	case reason == "stop", reason == "tool_calls", m.reply.RefusalText != "":
		return m.response(model, "completed", items)
	default:
		if reason == "length" {
			reason = "max_output_tokens"
		}
		r := m.response(model, "incomplete", items)
		r["incomplete_details"] = map[string]any{"reason": reason}
		return r
	}
}

// fault is the error of a response that fails.
func (m *responseOutput) fault() map[string]any {
	fault := map[string]any{"code": "server_error", "message": "upstream failed"}
	if m.reply.ErrorCode != "" {
		fault["code"] = m.reply.ErrorCode
	}
	if m.reply.ErrorMessage != "" {
		fault["message"] = m.reply.ErrorMessage
	}
	return fault
}
