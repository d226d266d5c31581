package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/calls"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// answer collects the blocks of a response in the order in which they come. The zero
// value is ready.
type answer struct {
	text      wire.LongText
	pieces    []*piece
	calls     calls.Assembler
	foreign   map[int]bool // indexes of blocks that are not read
	reasoning bool         // a text of the reasoning has come
}

// piece is a block as far as it has arrived. The index of the block tells pieces of one
// type apart; a server that gives all of them the same one starts each with a block
// start.
type piece struct {
	index    int
	text     uint64 // bytes, of a text
	called   bool   // it is the call with the number call
	call     int
	thinking *thinking
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
	delete(a.foreign, index)
	switch b.Type {
	case "text":
		a.pieces = append(a.pieces, &piece{index: index})
		return a.addText(index, b.Text)
	case "tool_use":
		a.addCall(index, calls.Piece{ID: b.ID, Name: b.Name, Arguments: wire.Text(b.Input), Begins: true})
	case "thinking", "redacted_thinking":
		t := &thinking{raw: b.raw, added: map[string]*bytes.Buffer{}}
		a.pieces = append(a.pieces, &piece{index: index, thinking: t})
		return a.addReasoning(t, b.Thinking)
	default:
		if a.foreign == nil {
			a.foreign = map[int]bool{}
		}
		a.foreign[index] = true
	}
	return model.Delta{}
}

// addText appends to the newest text, if nothing has followed it.
func (a *answer) addText(index int, text string) model.Delta {
	if text == "" {
		return model.Delta{}
	}
	n := len(a.pieces)
	if n == 0 || a.pieces[n-1].index != index || a.pieces[n-1].called || a.pieces[n-1].thinking != nil {
		a.pieces = append(a.pieces, &piece{index: index})
		n++
	}
	a.pieces[n-1].text += uint64(len(text))
	a.text.WriteString(text)
	return model.Delta{Text: text}
}

// addArguments takes a part of the arguments of a call. A part for a block that is not read
// belongs to a tool that the server runs, and one before the first call to none.
func (a *answer) addArguments(index int, arguments string) {
	if !a.foreign[index] && a.calls.Len() > 0 {
		a.addCall(index, calls.Piece{Arguments: arguments})
	}
}

// addCall takes a piece of a call.
func (a *answer) addCall(index int, p calls.Piece) {
	place := int64(index)
	p.Index = &place
	if at, begun := a.calls.Add(p); begun {
		a.pieces = append(a.pieces, &piece{index: index, called: true, call: at})
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
	numbers := map[int]uint32{} // of the calls in the answer
	for i, c := range a.calls.Calls() {
		r.ToolCalls = append(r.ToolCalls, adapter.ToolCall(c.ID, c.Name, c.Arguments))
		numbers[c.At] = uint32(i)
	}
	r.Parts = a.parts(numbers)
	r.FinishReason = finishReason(stop, r.ToolCalls)
	if stop == stopRefusal {
		r.Refusal = refusalReason(details)
	}
	return r
}

// parts returns the pieces as parts; nil for a text followed by calls.
func (a *answer) parts(numbers map[int]uint32) []*harnessv1.Part {
	var parts []*harnessv1.Part
	text := a.text.String()
	called, needed := false, false
	for _, p := range a.pieces {
		switch {
		case p.thinking != nil:
			parts, needed = append(parts, p.thinking.part()), true
		case p.called:
			if n, ok := numbers[p.call]; ok {
				parts, called = append(parts, &harnessv1.Part{Kind: &harnessv1.Part_Call{Call: n}}), true
			}
		case p.text > 0:
			needed = needed || called && !blank(text[:p.text])
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
