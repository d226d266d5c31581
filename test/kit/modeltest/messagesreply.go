package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// errorTypes are the kinds of errors of the Messages protocol by status.
var errorTypes = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
	http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	http.StatusInternalServerError: "api_error", http.StatusGatewayTimeout: "timeout_error", 529: "overloaded_error",
}

// errorBodyIn is the body of an error reply in the form of a protocol.
func (r Reply) errorBodyIn(messages bool) []byte {
	if !messages {
		return r.errorBody()
	}
	kind, message := r.ErrorCode, r.ErrorMessage
	if kind == "" {
		kind = errorTypes[r.Status]
	}
	if kind == "" {
		kind = "api_error"
	}
	if message == "" {
		message = fmt.Sprintf("scripted failure %d", r.Status)
	}
	return mustJSON(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}, "request_id": "req_test"})
}

// stopReason is the finish reason in the words of the Messages protocol.
func (r Reply) stopReason() string {
	reason := r.finishReason()
	if said, ok := map[string]string{
		"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal",
	}[reason]; ok {
		return said
	}
	return reason
}

// stopDetails describes a refusal; nil for other ends.
func (r Reply) stopDetails() any {
	if r.stopReason() != "refusal" {
		return nil
	}
	return map[string]any{"type": "refusal", "category": nullable(r.Refusal), "explanation": nullable(r.RefusalText)}
}

// messageUsage returns the usage at the start of a message, without the output,
// and at its end.
func (u *Usage) messageUsage() (start, end map[string]any) {
	return map[string]any{
		"input_tokens": u.Input - u.Cached - u.Written, "cache_creation_input_tokens": u.Written,
		"cache_read_input_tokens": u.Cached, "output_tokens": min(u.Output, 1),
	}, map[string]any{"output_tokens": u.Output, "output_tokens_details": map[string]any{"thinking_tokens": u.Reasoning}}
}

// messageParts returns the parts of an answer, with those that the quirks add.
func (r Reply) messageParts() []ReplyPart {
	parts := r.parts()
	if r.Quirks.Thinking != "" {
		parts = append([]ReplyPart{{Thinking: &Thinking{Text: r.Quirks.Thinking}}}, parts...)
	}
	return parts
}

// hologram is a block of an unknown type.
func hologram() map[string]any { return map[string]any{"type": "hologram", "text": 7} }

// message returns the plain JSON response of the Messages protocol to a request. The
// input of a call is in it byte for byte; input that is not JSON is a string, which only
// compatible servers send.
func (r Reply) message(req *Request, model string) []byte {
	content := []any{}
	if r.Quirks.Foreign {
		content = append(content, hologram())
	}
	inputs := map[string][]byte{}
	parts := r.messageParts()
	signer := req.signer(parts, r.Quirks.Foreign)
	calls := 0
	for _, p := range parts {
		switch {
		case p.Thinking != nil:
			content = append(content, signer.block(p.Thinking))
		case p.Call != nil:
			var input any = p.Call.Arguments
			if json.Valid([]byte(p.Call.Arguments)) {
				place := fmt.Sprintf("\x01input %d\x01", calls)
				inputs[string(mustJSON(place))] = []byte(p.Call.Arguments)
				input = place
			}
			content = append(content, map[string]any{"type": "tool_use", "id": messageCallID(*p.Call, calls), "name": p.Call.Name, "input": input})
			calls++
			signer.next.Calls++
		default:
			content = append(content, map[string]any{"type": "text", "text": p.Text, "citations": nil})
			signer.addText(p.Text)
		}
	}
	body := map[string]any{
		"id": "msg_test", "type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": r.stopReason(), "stop_sequence": nil, "stop_details": r.stopDetails(),
	}
	if r.Fault == FaultNoFinish {
		body["stop_reason"] = nil
	}
	if r.Usage != nil {
		usage, end := r.Usage.messageUsage()
		for name, n := range end {
			usage[name] = n
		}
		body["usage"] = usage
	}
	raw := mustJSON(body)
	for place, input := range inputs {
		raw = bytes.Replace(raw, []byte(place), input, 1)
	}
	return raw
}

// messageCallID returns the id of the call at an index of an answer.
func messageCallID(c Call, index int) string {
	if c.ID != "" {
		return c.ID
	}
	return fmt.Sprintf("call_%d", index)
}

// messageFrames are the events of a streamed message that carry its parts, then those
// that end it.
func (r Reply) messageFrames(req *Request, model string) (body, tail []frame) {
	f := &messageFrames{reply: r}
	begin := map[string]any{
		"id": "msg_test", "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 0, "output_tokens": 0},
	}
	end := map[string]any{
		"delta": map[string]any{"stop_reason": r.stopReason(), "stop_sequence": nil, "stop_details": r.stopDetails()},
		"usage": map[string]any{"output_tokens": 0},
	}
	if r.Usage != nil {
		begin["usage"], end["usage"] = r.Usage.messageUsage()
	}
	f.add("message_start", map[string]any{"message": begin})
	if r.Quirks.Foreign {
		f.add("weather", map[string]any{"delta": "sunny", "index": "none"})
		f.block(hologram(), map[string]any{"type": "hologram_delta", "shape": "cube"})
	}
	parts := r.messageParts()
	signer := req.signer(parts, r.Quirks.Foreign)
	calls := 0
	for _, p := range parts {
		switch {
		case p.Thinking != nil:
			f.thinking(signer.block(p.Thinking))
		case p.Call != nil:
			f.call(*p.Call, messageCallID(*p.Call, calls))
			calls++
			signer.next.Calls++
		default:
			f.text(p.Text)
			signer.addText(p.Text)
		}
	}
	body = f.frames
	f.frames = nil
	if r.Fault != FaultNoFinish {
		f.add("message_delta", end)
		f.add("message_stop", map[string]any{})
	}
	return body, f.frames
}

// messageFrames collects the events of a message.
type messageFrames struct {
	reply  Reply
	frames []frame
	index  int // of the next block
}

func (f *messageFrames) add(kind string, members map[string]any) {
	members["type"] = kind
	f.frames = append(f.frames, frame{event: kind, data: mustJSON(members)})
}

func (f *messageFrames) block(start map[string]any, deltas ...map[string]any) {
	at := f.index
	if f.reply.Quirks.SameIndex {
		at = 0
	}
	f.add("content_block_start", map[string]any{"index": at, "content_block": start})
	for _, d := range deltas {
		f.add("content_block_delta", map[string]any{"index": at, "delta": d})
	}
	f.add("content_block_stop", map[string]any{"index": at})
	f.index++
}

func (f *messageFrames) text(text string) {
	var deltas []map[string]any
	for _, piece := range pieces(text, f.reply.Fragment) {
		deltas = append(deltas, map[string]any{"type": "text_delta", "text": piece})
	}
	f.block(map[string]any{"type": "text", "text": ""}, deltas...)
}

func (f *messageFrames) call(c Call, id string) {
	start := map[string]any{"type": "tool_use", "id": id, "name": c.Name, "input": map[string]any{}}
	if f.reply.Quirks.WholeCalls {
		start["input"] = f.reply.arguments(c.Arguments)
		f.block(start)
		return
	}
	deltas := []map[string]any{{"type": "input_json_delta", "partial_json": ""}}
	for _, piece := range pieces(c.Arguments, f.reply.Fragment) {
		deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": piece})
	}
	f.block(start, deltas...)
}

// thinking sends a block of thinking: its text and its signature in deltas, redacted
// thinking in one piece.
func (f *messageFrames) thinking(block map[string]any) {
	signature, ok := block["signature"].(string)
	if !ok {
		f.block(block)
		return
	}
	var deltas []map[string]any
	for _, piece := range pieces(block["thinking"].(string), f.reply.Fragment) {
		deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": piece})
	}
	deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": signature})
	block["thinking"], block["signature"] = "", ""
	f.block(block, deltas...)
}
