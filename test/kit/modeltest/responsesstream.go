package modeltest

import (
	"encoding/json"
	"maps"
)

// responseEvents writes the events of a response.
type responseEvents struct {
	frames []frame
	number int
}

func (e *responseEvents) add(kind string, members map[string]any) {
	data := map[string]any{"type": kind, "sequence_number": e.number}
	maps.Copy(data, members)
	e.number++
	e.frames = append(e.frames, frame{event: kind, data: mustJSON(data)})
}

// frames returns the events of the items, then what ends the stream, and the event of
// an error in mid-stream.
func (m *responseOutput) frames(model string, items []map[string]any) (body, tail []frame, failed frame) {
	var e responseEvents
	e.add("response.created", map[string]any{"response": m.response(model, "in_progress", []any{})})
	e.add("response.in_progress", map[string]any{"response": m.response(model, "in_progress", []any{})})
	for i, item := range items {
		e.item(i, item, m.reply)
	}
	body = e.frames
	e.frames = nil
	end := m.ended(model, items)
	if m.reply.Quirks.OmitOutput {
		delete(end, "output")
	}
	e.add("response."+end["status"].(string), map[string]any{"response": end})
	if m.reply.Fault != FaultNoFinish {
		tail = e.frames
	}
	e.frames = nil
	switch fault := m.fault(); {
	case m.reply.Fault == FaultFailed:
		e.add("response.failed", map[string]any{"response": end})
	case m.reply.Quirks.FlatErrors:
		e.add("error", fault)
	default:
		e.add("error", map[string]any{"error": fault})
	}
	return body, tail, e.frames[0]
}

// item writes the events of an item: its start, without what follows as deltas and with
// half of the encrypted content, the deltas, and its end with all of it.
func (e *responseEvents) item(index int, item map[string]any, reply Reply) {
	start := maps.Clone(item)
	start["status"] = "in_progress"
	var deltas func(at map[string]any)
	switch item["type"] {
	case "reasoning":
		delete(start, "status")
		start["summary"] = []any{}
		if encrypted, ok := item["encrypted_content"].(string); ok {
			start["encrypted_content"] = encrypted[:len(encrypted)/2]
		}
		deltas = func(at map[string]any) { e.summary(at, item["summary"].([]any), reply.Fragment) }
	case "function_call":
		start["arguments"] = ""
		deltas = func(at map[string]any) { e.arguments(at, item, reply) }
	default:
		start["content"] = []any{}
		deltas = func(at map[string]any) { e.text(at, item["content"].([]any)[0].(map[string]any), reply.Fragment) }
	}
	e.add("response.output_item.added", map[string]any{"output_index": index, "item": start})
	deltas(map[string]any{"output_index": index, "item_id": item["id"]})
	e.add("response.output_item.done", map[string]any{"output_index": index, "item": item})
}

func with(at map[string]any, members map[string]any) map[string]any {
	all := maps.Clone(at)
	maps.Copy(all, members)
	return all
}

func (e *responseEvents) summary(at map[string]any, parts []any, size int) {
	for i, part := range parts {
		at := with(at, map[string]any{"summary_index": i})
		text := part.(map[string]any)["text"].(string)
		e.add("response.reasoning_summary_part.added", with(at, map[string]any{"part": map[string]any{"type": "summary_text", "text": ""}}))
		for _, piece := range pieces(text, size) {
			e.add("response.reasoning_summary_text.delta", with(at, map[string]any{"delta": piece}))
		}
		e.add("response.reasoning_summary_text.done", with(at, map[string]any{"text": text}))
		e.add("response.reasoning_summary_part.done", with(at, map[string]any{"part": part}))
	}
}

func (e *responseEvents) arguments(at, item map[string]any, reply Reply) {
	arguments, ok := item["arguments"].(string)
	if !ok {
		arguments = string(item["arguments"].(json.RawMessage))
	}
	if !reply.Quirks.WholeCalls {
		for _, piece := range pieces(arguments, reply.Fragment) {
			e.add("response.function_call_arguments.delta", with(at, map[string]any{"delta": piece}))
		}
	}
	e.add("response.function_call_arguments.done", with(at, map[string]any{"arguments": item["arguments"], "name": item["name"]}))
}

func (e *responseEvents) text(at, content map[string]any, size int) {
	at = with(at, map[string]any{"content_index": 0})
	if refusal, ok := content["refusal"].(string); ok {
		for _, piece := range pieces(refusal, size) {
			e.add("response.refusal.delta", with(at, map[string]any{"delta": piece}))
		}
		e.add("response.refusal.done", with(at, map[string]any{"refusal": refusal}))
		return
	}
	text := content["text"].(string)
	e.add("response.content_part.added", with(at, map[string]any{"part": map[string]any{"type": "output_text", "text": "", "annotations": []any{}}}))
	for _, piece := range pieces(text, size) {
		e.add("response.output_text.delta", with(at, map[string]any{"delta": piece}))
	}
	e.add("response.output_text.done", with(at, map[string]any{"text": text}))
	e.add("response.content_part.done", with(at, map[string]any{"part": content}))
}
