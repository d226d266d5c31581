package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// answer collects the blocks of a response in the order in which they come. The zero
// value is ready.
type answer struct {
	text      wire.LongText
	pieces    []*piece
	reasoning bool // a text of the reasoning has come
}

// piece is a block as far as it has arrived. The index of the block tells pieces of one
// type apart; a server that gives all of them the same one starts each with a block
// start.
type piece struct {
	index    int
	text     uint64 // bytes, of a text
	call     *call
	thinking *thinking
}

// call is a tool call as far as it has arrived.
type call struct {
	id, name  string
	input     json.RawMessage // from the start of the block
	arguments wire.LongText
	written   bool // a delta was not empty
}

// thinking is a block of thinking as far as it has arrived.
type thinking struct {
	raw  json.RawMessage // the start of the block
	text wire.LongText   // for people

	// added are what deltas have appended to the members thinking and signature, as it is
	// between the quotes in their JSON.
	added map[string]*bytes.Buffer
}

// start adds a block and returns the delta of what it contains already. Blocks of unknown
// types are ignored.
func (a *answer) start(index int, b responseBlock) model.Delta {
	switch b.Type {
	case "text":
		a.pieces = append(a.pieces, &piece{index: index})
		return a.addText(index, b.Text)
	case "tool_use":
		a.pieces = append(a.pieces, &piece{index: index, call: &call{id: b.ID, name: b.Name, input: b.Input}})
	case "thinking", "redacted_thinking":
		t := &thinking{raw: b.raw, added: map[string]*bytes.Buffer{}}
		a.pieces = append(a.pieces, &piece{index: index, thinking: t})
		return a.addReasoning(t, b.Thinking)
	}
	return model.Delta{}
}

// addText appends to the newest text, if nothing has followed it.
func (a *answer) addText(index int, text string) model.Delta {
	if text == "" {
		return model.Delta{}
	}
	n := len(a.pieces)
	if n == 0 || a.pieces[n-1].index != index || a.pieces[n-1].call != nil || a.pieces[n-1].thinking != nil {
		a.pieces = append(a.pieces, &piece{index: index})
		n++
	}
	a.pieces[n-1].text += uint64(len(text))
	a.text.WriteString(text)
	return model.Delta{Text: text}
}

// addArguments appends to the arguments of the newest call of a block's index. A
// part for another block belongs to a tool that the server runs, and is ignored.
func (a *answer) addArguments(index int, arguments string) {
	for i := len(a.pieces) - 1; i >= 0; i-- {
		if c := a.pieces[i].call; c != nil && a.pieces[i].index == index {
			c.arguments.WriteString(arguments)
			c.written = c.written || arguments != ""
			return
		}
	}
}

// addThinking appends the value of a delta to a member of the newest thinking of a
// block's index.
func (a *answer) addThinking(index int, member string, value json.RawMessage) model.Delta {
	for i := len(a.pieces) - 1; i >= 0; i-- {
		t := a.pieces[i].thinking
		if t == nil || a.pieces[i].index != index {
			continue
		}
		if inner, is := insideQuotes(value); is {
			if t.added[member] == nil {
				t.added[member] = &bytes.Buffer{}
			}
			t.added[member].Write(inner)
		}
		if member == memberThinking {
			return a.addReasoning(t, wire.Text(value))
		}
		return model.Delta{}
	}
	return model.Delta{}
}

// addReasoning appends to the text for people. A blank line separates the texts of two
// blocks.
func (a *answer) addReasoning(t *thinking, text string) model.Delta {
	if text == "" {
		return model.Delta{}
	}
	separator := ""
	if t.text.Len() == 0 && a.reasoning {
		separator = "\n\n"
	}
	a.reasoning = true
	t.text.WriteString(text)
	return model.Delta{Reasoning: separator + text}
}

// The members of a block of thinking that deltas append to.
const (
	memberThinking  = "thinking"
	memberSignature = "signature"
)

// insideQuotes returns the bytes between the quotes of a JSON string. Joined with those
// of another they are the inside of a JSON string again.
func insideQuotes(raw json.RawMessage) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	return raw[1 : len(raw)-1], true
}

// block returns the block as JSON: its start, with the text of the deltas appended. All
// other bytes are those of the start.
func (t *thinking) block() json.RawMessage {
	if len(t.added) == 0 {
		return t.raw
	}
	var b bytes.Buffer
	copied := 0 // bytes of the start
	missing := []string{memberThinking, memberSignature}
	decoder := json.NewDecoder(bytes.NewReader(t.raw))
	_, _ = decoder.Token() // the brace: raw is a JSON object
	for decoder.More() {
		name, err := decoder.Token()
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil {
			return t.raw
		}
		at := slices.Index(missing, name.(string))
		if at < 0 || t.added[missing[at]] == nil {
			continue
		}
		end := int(decoder.InputOffset())
		b.Write(t.raw[copied : end-len(value)])
		writeJoined(&b, value, t.added[missing[at]])
		copied, missing = end, slices.Delete(missing, at, at+1)
	}
	brace := bytes.LastIndexByte(t.raw, '}')
	b.Write(t.raw[copied:brace])
	for _, name := range missing {
		if t.added[name] != nil { // a member precedes it: the type
			b.WriteString(`,"` + name + `":`)
			writeJoined(&b, nil, t.added[name])
		}
	}
	b.Write(t.raw[brace:])
	return b.Bytes()
}

// writeJoined writes a JSON string: value, if it is one, followed by added.
func writeJoined(b *bytes.Buffer, value json.RawMessage, added *bytes.Buffer) {
	inner, _ := insideQuotes(value)
	b.WriteByte('"')
	b.Write(inner)
	b.Write(added.Bytes())
	b.WriteByte('"')
}

// response returns the content that has arrived, without the model and the usage.
func (a *answer) response(stop string, details json.RawMessage) *model.Response {
	r := &model.Response{Text: a.text.String()}
	for _, p := range a.pieces {
		if c := p.call; c != nil {
			arguments := c.arguments.String()
			if !c.written {
				arguments = wire.Text(c.input)
			}
			r.ToolCalls = append(r.ToolCalls, adapter.ToolCall(c.id, c.name, arguments))
		}
	}
	r.Parts = a.parts()
	r.FinishReason = finishReason(stop, r.ToolCalls)
	if stop == stopRefusal {
		r.Refusal = refusalReason(details)
	}
	return r
}

// parts returns the pieces as parts; nil for a text followed by calls.
func (a *answer) parts() []*harnessv1.Part {
	var parts []*harnessv1.Part
	text := a.text.String()
	calls := uint32(0)
	needed := false
	for _, p := range a.pieces {
		switch {
		case p.thinking != nil:
			parts, needed = append(parts, p.thinking.part()), true
		case p.call != nil:
			parts = append(parts, &harnessv1.Part{Kind: &harnessv1.Part_Call{Call: calls}})
			calls++
		case p.text > 0:
			needed = needed || calls > 0 && !blank(text[:p.text])
			text = text[p.text:]
			parts = append(parts, &harnessv1.Part{Kind: &harnessv1.Part_Text{Text: p.text}})
		}
	}
	if !needed {
		return nil
	}
	return parts
}

func (t *thinking) part() *harnessv1.Part {
	reasoning := &harnessv1.Reasoning{}
	if t.text.Len() > 0 {
		reasoning.Text = content.Inline(t.text.String())
	}
	return &harnessv1.Part{Kind: &harnessv1.Part_Reasoning{Reasoning: reasoning}, Opaque: adapter.Opaque(t.block())}
}
