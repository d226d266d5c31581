package openai

import (
	"encoding/json"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// Chunks of a content that is an array, as Mistral sends it with reasoning:
// {"type": "thinking", "thinking": [{"type": "text", "text": "…"}]} and {"type": "text",
// "text": "…"}; the answer of a stream comes as strings too
// (docs.mistral.ai/capabilities/reasoning).
const (
	chunkThinking = "thinking"
	chunkOfText   = "text"
)

// chunk is a chunk of reasoning, as far as it has arrived.
type chunk struct {
	outer entry   // the chunk, in which parts replace chunkThinking if it has grown
	parts []entry // what it consists of
}

// addChunk adds a chunk of the content and returns its reasoning for people. Only the first
// of a content can continue the last one of the delta before. Chunks of other types are not
// read.
func (a *answer) addChunk(raw json.RawMessage, first bool) string {
	e := parseEntry(raw)
	switch text(e.object.value("type")) {
	case chunkOfText:
		a.addText(text(e.object.value(chunkOfText)))
	case chunkThinking:
		c := newChunk(e)
		said := c.text()
		if last := len(a.order) - 1; first && last >= 0 && a.order[last].chunk != nil {
			a.order[last].chunk.add(c)
		} else {
			a.order = append(a.order, piece{chunk: c})
		}
		return said
	}
	return ""
}

func newChunk(e entry) *chunk {
	c := &chunk{outer: e}
	var raw []json.RawMessage
	if json.Unmarshal(e.object.value(chunkThinking), &raw) == nil {
		for _, r := range raw {
			c.parts = append(c.parts, parseEntry(r))
		}
	}
	return c
}

// text returns the text for people.
func (c *chunk) text() string {
	var said strings.Builder
	for _, part := range c.parts {
		said.WriteString(text(part.object.value(chunkOfText)))
	}
	return said.String()
}

// add adds the next piece of the chunk: texts are appended, and of other members the
// newest counts.
func (c *chunk) add(piece *chunk) {
	for _, part := range piece.parts {
		last := len(c.parts) - 1
		if last < 0 || !isText(c.parts[last].object) || !isText(part.object) {
			c.parts = append(c.parts, part)
			continue
		}
		have := c.parts[last].object
		c.parts[last] = entry{object: have.set(chunkOfText, join(have.value(chunkOfText), part.object.value(chunkOfText)))}
	}
	for _, m := range piece.outer.object {
		if m.name != chunkThinking {
			c.outer.object = c.outer.object.set(m.name, m.value)
		}
	}
	c.outer.raw = nil
}

// json returns the chunk as it goes back.
func (c *chunk) json() json.RawMessage {
	if c.outer.raw == nil {
		c.outer.object = c.outer.object.set(chunkThinking, list(c.parts))
	}
	return c.outer.json()
}

// isText reports whether a part of a chunk is a text and nothing else.
func isText(part object) bool {
	const members = 2 // type and text
	return len(part) == members && text(part.value("type")) == chunkOfText && isString(part.value(chunkOfText))
}

// chunkOpaque returns what goes back of a chunk; nil if nothing does.
func (a *answer) chunkOpaque(c *chunk) *harnessv1.Opaque {
	if !a.reasoning.Chunks && a.reasoning.Field != "" || !a.reasoning.goesBack(a.calls.Len() > 0) {
		return nil
	}
	return adapter.Opaque([]byte(chunksPrefix + "[" + string(c.json()) + "]}"))
}
