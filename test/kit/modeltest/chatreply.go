package modeltest

import "strings"

// chatReply is a reply in the chat protocol.
type chatReply struct {
	Reply

	temper *Temper
	model  string
	n      int // number of the reply, from 0
}

// format is what a service calls the form of its reasoning.
const format = "test-v1"

// sent returns what goes with the answer that only the server can read.
func (r chatReply) sent() payload {
	var s payload
	if value := r.reasoning(); value != nil {
		s.reasoning = string(compact(mustJSON(value), r.temper.member() == memberDetails))
	}
	if extra := r.extra(); extra != nil {
		s.extra = string(mustJSON(extra))
	}
	return s
}

// extra returns the extra_content of the first call or, without calls, of the message.
func (r chatReply) extra() any {
	if !r.temper.Signatures {
		return nil
	}
	return map[string]any{"google": map[string]any{"thought_signature": secret(r.n, "signature", 0)}}
}

// reasoning returns the value of the member with reasoning; nil if there is none. In
// chunks of the content, it is the list of those with reasoning.
func (r chatReply) reasoning() any {
	var list []any
	var text strings.Builder
	for _, p := range r.parts() {
		if p.Thinking == nil {
			continue
		}
		switch {
		case r.temper.member() == memberDetails:
			list = append(list, r.detail(len(list), p.Thinking))
		case p.Thinking.Redacted || p.Thinking.Text == "":
		case r.temper.member() == memberChunks:
			list = append(list, thinkingChunk(p.Thinking.Text))
		default:
			text.WriteString(p.Thinking.Text)
		}
	}
	switch {
	case len(list) > 0:
		return list
	case text.Len() > 0:
		return text.String()
	}
	return nil
}

// detail returns an entry of reasoning_details.
func (r chatReply) detail(i int, t *Thinking) map[string]any {
	if t.Redacted || t.Text == "" {
		return map[string]any{"type": "reasoning.encrypted", "data": secret(r.n, "data", t.Size), "format": format, "index": i}
	}
	return map[string]any{"type": "reasoning.text", "text": t.Text, "signature": secret(r.n, "signature", t.Size), "format": format, "index": i}
}

func thinkingChunk(text string) map[string]any {
	return map[string]any{"type": "thinking", "thinking": []any{textChunk(text)}}
}

func textChunk(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// completion is the plain JSON answer.
func (r chatReply) completion() []byte {
	message := map[string]any{"role": "assistant", "content": nullable(r.text()), "refusal": nullable(r.RefusalText)}
	if value := r.reasoning(); value != nil {
		switch r.temper.member() {
		case memberChunks:
			message["content"] = r.contentChunks()
		case memberDetails:
			message["reasoning"], message[memberDetails] = nullable(r.thoughts()), value
		default:
			message[r.temper.member()] = value
		}
	}
	if r.Quirks.BothMembers {
		message["reasoning"], message["reasoning_content"] = nullable(r.thoughts()), nullable(r.thoughts())
	}
	calls := r.calls()
	if len(calls) == 0 && r.temper.Signatures {
		message[memberExtra] = r.extra()
	}
	if len(calls) > 0 {
		list := make([]any, len(calls))
		for i, c := range calls {
			call := map[string]any{"id": r.callID(i), "type": "function",
				"function": map[string]any{"name": c.Name, "arguments": r.arguments(c.Arguments)}}
			if i == 0 && r.temper.Signatures {
				call[memberExtra] = r.extra()
			}
			list[i] = call
		}
		message["tool_calls"] = list
	}
	finish := any(r.finishReason())
	if r.Fault == FaultNoFinish || r.Quirks.NoFinish {
		finish = nil
	}
	body := map[string]any{
		"id": "chatcmpl-test", "object": "chat.completion", "created": 1, "model": r.model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish, "logprobs": nil}},
	}
	if r.Usage != nil {
		body["usage"] = r.Usage.json()
	}
	return mustJSON(body)
}

// contentChunks is the content with reasoning in it.
func (r chatReply) contentChunks() []any {
	var list []any
	for _, p := range r.parts() {
		switch {
		case p.Text != "":
			list = append(list, textChunk(p.Text))
		case p.Thinking != nil && p.Thinking.Text != "" && !p.Thinking.Redacted:
			list = append(list, thinkingChunk(p.Thinking.Text))
		}
	}
	return list
}

// thoughts returns the text of the reasoning for people.
func (r chatReply) thoughts() string {
	var b strings.Builder
	for _, p := range r.parts() {
		if p.Thinking != nil && !p.Thinking.Redacted {
			b.WriteString(p.Thinking.Text)
		}
	}
	return b.String()
}

// chunks are the data of the events that carry the answer, then those that end the
// stream.
func (r chatReply) chunks(usage bool) (body, tail [][]byte) {
	chunk := func(choices []any, more map[string]any) []byte {
		c := map[string]any{"id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1, "model": r.model, "choices": choices}
		if r.Quirks.NullErrors {
			c["error"] = nil
		}
		for k, v := range more {
			c[k] = v
		}
		return mustJSON(c)
	}
	for _, d := range r.deltas() {
		body = append(body, chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil))
	}
	var last map[string]any
	reportUsage := usage && r.Usage != nil
	if reportUsage && r.Quirks.UsageInLastChoice {
		last = map[string]any{"usage": r.Usage.json()}
	}
	if r.Fault != FaultNoFinish && !r.Quirks.NoFinish {
		tail = append(tail, chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": r.finishReason()}}, last))
	}
	if reportUsage && !r.Quirks.UsageInLastChoice {
		tail = append(tail, chunk([]any{}, map[string]any{"usage": r.Usage.json()}))
	}
	return body, tail
}

// deltas are the pieces of a streamed answer.
func (r chatReply) deltas() []map[string]any {
	deltas := []map[string]any{{"role": "assistant", "content": ""}}
	thinking, calls := 0, 0
	for _, p := range r.parts() {
		switch {
		case p.Thinking != nil:
			deltas = append(deltas, r.thinkingDeltas(thinking, p.Thinking)...)
			thinking++
		case p.Call != nil:
			for _, d := range r.callDeltas(calls) {
				deltas = append(deltas, map[string]any{"tool_calls": []any{d}})
			}
			calls++
		default:
			for _, piece := range pieces(p.Text, r.Fragment) {
				deltas = append(deltas, map[string]any{"content": piece})
			}
		}
	}
	for _, piece := range pieces(r.RefusalText, r.Fragment) {
		deltas = append(deltas, map[string]any{"refusal": piece})
	}
	if calls == 0 && r.temper.Signatures {
		deltas = append(deltas, map[string]any{"content": "", memberExtra: r.extra()})
	}
	return deltas
}

// thinkingDeltas are the pieces of a part of reasoning; i is its position among them.
func (r chatReply) thinkingDeltas(i int, t *Thinking) []map[string]any {
	member := r.temper.member()
	if member == memberDetails && (t.Redacted || t.Text == "") {
		return []map[string]any{{memberDetails: []any{r.detail(i, t)}}}
	}
	if t.Redacted {
		return nil
	}
	var deltas []map[string]any
	for _, piece := range pieces(t.Text, r.Fragment) {
		d := map[string]any{}
		switch {
		case r.Quirks.BothMembers:
			d["reasoning"], d["reasoning_content"] = piece, piece
		case member == memberChunks:
			d["content"] = []any{thinkingChunk(piece)}
		case member == memberDetails:
			d["reasoning"] = piece
			d[memberDetails] = []any{map[string]any{"type": "reasoning.text", "text": piece, "format": format, "index": i}}
		default:
			d[member] = piece
		}
		deltas = append(deltas, d)
	}
	if member == memberDetails {
		deltas = append(deltas, map[string]any{memberDetails: []any{
			map[string]any{"type": "reasoning.text", "text": "", "signature": r.detail(i, t)["signature"], "format": format, "index": i},
		}})
	}
	return deltas
}

func (r chatReply) callDeltas(i int) []map[string]any {
	c := r.calls()[i]
	full := func(arguments any) map[string]any {
		return map[string]any{"index": i, "id": r.callID(i), "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": arguments}}
	}
	var deltas []map[string]any
	if r.Quirks.WholeCalls {
		deltas = append(deltas, full(r.arguments(c.Arguments)))
	} else {
		deltas = append(deltas, full(""))
		for _, piece := range pieces(c.Arguments, r.Fragment) {
			d := map[string]any{"index": i, "function": map[string]any{"arguments": piece}}
			if r.Quirks.RepeatIDs {
				d = full(piece)
			}
			deltas = append(deltas, d)
		}
	}
	if i == 0 && r.temper.Signatures {
		deltas[0][memberExtra] = r.extra()
	}
	if r.Quirks.OmitIndex {
		for _, d := range deltas {
			delete(d, "index")
		}
	}
	return deltas
}

// frames are the events of a streamed chat completion, those of chunks, and what
// closes the stream.
func (r chatReply) frames(usage bool) (body, tail []frame) {
	chunks, ends := r.chunks(usage)
	for _, c := range chunks {
		body = append(body, frame{data: c})
	}
	for _, c := range ends {
		tail = append(tail, frame{data: c})
	}
	if !r.Quirks.NoDone && r.Fault != FaultNoFinish {
		tail = append(tail, frame{data: []byte("[DONE]")})
	}
	return body, tail
}
