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

// messageUsage returns the usage at the start of a message, without the output,
// and at its end.
func (u *Usage) messageUsage() (start, end map[string]any) {
	return map[string]any{
		"input_tokens": u.Input - u.Cached - u.Written, "cache_creation_input_tokens": u.Written,
		"cache_read_input_tokens": u.Cached, "output_tokens": min(u.Output, 1),
	}, map[string]any{"output_tokens": u.Output}
}

// message returns the plain JSON response of the Messages protocol. The input of a
// call is in it byte for byte; input that is not JSON is a string, which only
// compatible servers send.
func (r Reply) message(model string) []byte {
	content := []any{}
	if r.Quirks.Thinking != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.Quirks.Thinking, "signature": "c2ln"})
	}
	if r.Quirks.Foreign {
		content = append(content, map[string]any{"type": "hologram", "text": 7})
	}
	if r.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": r.Text, "citations": nil})
	}
	inputs := map[string][]byte{}
	for i, c := range r.Calls {
		var input any = c.Arguments
		if json.Valid([]byte(c.Arguments)) {
			place := fmt.Sprintf("\x01input %d\x01", i)
			inputs[string(mustJSON(place))] = []byte(c.Arguments)
			input = place
		}
		content = append(content, map[string]any{"type": "tool_use", "id": r.callID(i), "name": c.Name, "input": input})
	}
	body := map[string]any{
		"id": "msg_test", "type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": r.stopReason(), "stop_sequence": nil,
	}
	if r.Fault == FaultNoFinish {
		body["stop_reason"] = nil
	}
	if r.Usage != nil {
		usage, end := r.Usage.messageUsage()
		usage["output_tokens"] = end["output_tokens"]
		body["usage"] = usage
	}
	raw := mustJSON(body)
	for place, input := range inputs {
		raw = bytes.Replace(raw, []byte(place), input, 1)
	}
	return raw
}

// messageFrames are the events of a streamed message that carry text and calls,
// then those that end it.
func (r Reply) messageFrames(model string) (body, tail []frame) {
	add := func(to *[]frame, kind string, members map[string]any) {
		members["type"] = kind
		*to = append(*to, frame{event: kind, data: mustJSON(members)})
	}
	begin := map[string]any{
		"id": "msg_test", "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 0, "output_tokens": 0},
	}
	end := map[string]any{"delta": map[string]any{"stop_reason": r.stopReason(), "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 0}}
	if r.Usage != nil {
		begin["usage"], end["usage"] = r.Usage.messageUsage()
	}
	add(&body, "message_start", map[string]any{"message": begin})
	index := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		at := index
		if r.Quirks.SameIndex {
			at = 0
		}
		add(&body, "content_block_start", map[string]any{"index": at, "content_block": start})
		for _, d := range deltas {
			add(&body, "content_block_delta", map[string]any{"index": at, "delta": d})
		}
		add(&body, "content_block_stop", map[string]any{"index": at})
		index++
	}
	if r.Quirks.Thinking != "" {
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""},
			map[string]any{"type": "thinking_delta", "thinking": r.Quirks.Thinking},
			map[string]any{"type": "signature_delta", "signature": "c2ln"})
	}
	if r.Quirks.Foreign {
		add(&body, "weather", map[string]any{"delta": "sunny", "index": "none"})
		block(map[string]any{"type": "hologram", "text": ""}, map[string]any{"type": "hologram_delta", "shape": "cube"})
	}
	if r.Text != "" {
		var deltas []map[string]any
		for _, piece := range pieces(r.Text, r.Fragment) {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": piece})
		}
		block(map[string]any{"type": "text", "text": ""}, deltas...)
	}
	for i, c := range r.Calls {
		start := map[string]any{"type": "tool_use", "id": r.callID(i), "name": c.Name, "input": map[string]any{}}
		if r.Quirks.WholeCalls {
			start["input"] = r.arguments(c.Arguments)
			block(start)
			continue
		}
		deltas := []map[string]any{{"type": "input_json_delta", "partial_json": ""}}
		for _, piece := range pieces(c.Arguments, r.Fragment) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": piece})
		}
		block(start, deltas...)
	}
	if r.Fault != FaultNoFinish {
		add(&tail, "message_delta", end)
		add(&tail, "message_stop", map[string]any{})
	}
	return body, tail
}
