package openai

import (
	"bytes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// Opaque parts are JSON objects. Their members are written into the message of the
// answer or, for a call, into the call. Two members are more than that:
const (
	// chunksPrefix begins an opaque part with chunks of the content, which are written
	// where the part is.
	chunksPrefix = `{"content":`
	// extraPrefix begins an opaque part that is no reasoning (Gemini's signatures). It
	// goes back whatever the settings of reasoning are.
	extraPrefix = `{"extra_content":`
)

// substitute is what Gemini takes for the signature of a call that another model made
// (ai.google.dev/gemini-api/docs/thought-signatures).
const substitute = `{"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}}`

// goesBack reports whether the reasoning of an answer goes back.
func (r *Reasoning) goesBack(calls bool) bool {
	return r.Back == BackAlways || r.Back == BackWithCalls && calls
}

// isExtra and isChunks report what an opaque part is.
func isExtra(opaque []byte) bool  { return bytes.HasPrefix(opaque, []byte(extraPrefix)) }
func isChunks(opaque []byte) bool { return bytes.HasPrefix(opaque, []byte(chunksPrefix)) }

// opaqueOf returns the opaque bytes of a part that go back; nil if there are none.
func (e *encoder) opaqueOf(m *harnessv1.Message, p *harnessv1.Part) []byte {
	data := p.GetOpaque().GetInline()
	if len(data) == 0 || !isExtra(data) && !e.reasoning.goesBack(len(m.GetToolCalls()) > 0) || !model.SendableOpaque(data) {
		return nil
	}
	return data
}

// returned writes the members that go back with an answer, and the stand-in that the server expects
// instead of reasoning if the answer has none.
func (e *encoder) returned(m *harnessv1.Message) {
	own := false
	var parts [][]byte
	for _, p := range m.GetParts() {
		_, call := p.GetKind().(*harnessv1.Part_Call)
		data := e.opaqueOf(m, p)
		if call || data == nil {
			continue
		}
		own = own || !isExtra(data)
		if !isChunks(data) {
			parts = append(parts, data)
		}
	}
	for _, data := range distinct(parts) {
		e.members(data)
	}
	r := e.reasoning
	if !own && r.HasBlank && r.Field != "" && r.goesBack(len(m.GetToolCalls()) > 0) {
		e.member(r.Field, r.Blank)
	}
}

// distinct returns opaque parts of which no two have a member of one name: parts in which one is repeated become
// a single part, in which the last of these members counts.
func distinct(parts [][]byte) [][]byte {
	if len(parts) < 2 {
		return parts
	}
	merged, members := object{}, 0
	for _, data := range parts {
		o, ok := parseObject(data)
		if !ok { // the body refuses it
			return parts
		}
		members += len(o)
		for _, m := range o {
			merged = merged.set(m.name, m.value)
		}
	}
	if len(merged) == members {
		return parts
	}
	return [][]byte{merged.json()}
}

// callExtras returns the opaque bytes of the calls by their index. With Signature the
// first call gets a stand-in if none has any.
func (e *encoder) callExtras(m *harnessv1.Message) map[int][]byte {
	extras := map[int][]byte{}
	for _, p := range m.GetParts() {
		if call, ok := p.GetKind().(*harnessv1.Part_Call); ok {
			if data := e.opaqueOf(m, p); data != nil {
				extras[int(call.Call)] = data
			}
		}
	}
	if len(extras) == 0 && e.reasoning.Signature {
		extras[0] = []byte(substitute)
	}
	return extras
}

// hasChunks reports whether the content of an answer is written as chunks.
func (e *encoder) hasChunks(m *harnessv1.Message) bool {
	for _, p := range m.GetParts() {
		if isChunks(p.GetOpaque().GetInline()) && e.opaqueOf(m, p) != nil {
			return true
		}
	}
	return false
}

// textChunk is a piece of text in a content that is an array.
type textChunk struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// chunks writes the content of an answer as an array: the chunks as they came, and its
// texts between them.
func (e *encoder) chunks(m *harnessv1.Message, text string) {
	e.name("content")
	e.open('[')
	for _, p := range m.GetParts() {
		if data := e.opaqueOf(m, p); isChunks(data) {
			e.chunk(data)
		} else if n := min(p.GetText(), uint64(len(text))); n > 0 {
			e.text(text[:n])
			text = text[n:]
		}
	}
	if text != "" {
		e.text(text)
	}
	e.end(']')
}

// chunk writes the chunks of an opaque part.
func (e *encoder) chunk(opaque []byte) {
	object, ok := within(opaque, '{', '}')
	if ok {
		var list []byte
		if list, ok = within(object[len(chunksPrefix)-1:], '[', ']'); ok && len(list) > 0 {
			e.next()
			_, _ = e.Write(list)
		}
	}
}

func (e *encoder) text(text string) {
	e.next()
	e.value(textChunk{Type: "text", Text: text})
}
