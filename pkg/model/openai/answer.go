package openai

import (
	"encoding/json"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// maxRefusal bounds the text of a refusal, in bytes.
const maxRefusal = 4 << 10

// refusalText is the category of a refusal that the model wrote.
const refusalText = "refusal"

// answer is the sum of the pieces of a response.
type answer struct {
	reasoning *Reasoning

	text    wire.LongText
	refused int     // bytes of text that are a refusal
	order   []piece // texts and reasoning
	calls   []*call
	// thought is reasoning in a member of the message.
	thought thought
	// extra is extra_content of the message.
	extra json.RawMessage
}

// piece is a text of n bytes; a chunk of reasoning; or, without both, the place of the
// reasoning in a member of the message.
type piece struct {
	n     uint64
	chunk *chunk
}

// call is a tool call as far as it has arrived.
type call struct {
	index     wire.Int // -1: the server gave none
	id, name  string
	arguments wire.LongText
	extra     json.RawMessage
}

// add adds what a reply has but calls, and returns what it adds for people.
func (a *answer) add(r *reply) model.Delta {
	delta := model.Delta{Reasoning: a.addThought(r)}
	if !wire.Absent(r.ExtraContent) {
		a.extra = r.ExtraContent
	}
	before := a.text.Len()
	var chunks []json.RawMessage
	if len(r.Content) > 0 && r.Content[0] == '[' && json.Unmarshal(r.Content, &chunks) == nil {
		for i, c := range chunks {
			delta.Reasoning += a.addChunk(c, i == 0)
		}
	} else {
		a.addText(wire.Text(r.Content))
	}
	a.addRefusal(text(r.Refusal))
	delta.Text = a.text.Since(before)
	return delta
}

func (a *answer) addText(text string) {
	if text == "" {
		return
	}
	a.text.WriteString(text)
	if last := len(a.order) - 1; last >= 0 && a.order[last].n > 0 {
		a.order[last].n += uint64(len(text))
		return
	}
	a.order = append(a.order, piece{n: uint64(len(text))})
}

// addRefusal adds text of a refusal, up to maxRefusal bytes.
func (a *answer) addRefusal(text string) {
	if text == "" {
		return
	}
	text = content.Cut(text, max(maxRefusal-a.refused, 0))
	a.refused += max(len(text), 1)
	a.addText(text)
}

// addCall appends a delta to the call that it belongs to. With an index that is
// the newest call of that index. A server that sends no index starts a call with
// a new id, or, without ids, with a name; other deltas continue the last call.
// Some servers give each whole call of a response the index 0; there too a new id
// starts a call.
func (a *answer) addCall(d callDelta) {
	var c *call
	if d.Index != nil {
		for _, have := range a.calls {
			if have.index == *d.Index {
				c = have
			}
		}
		if c != nil && d.ID != "" && c.id != "" && string(d.ID) != c.id {
			c = nil
		}
	} else if n := len(a.calls); n > 0 {
		last := a.calls[n-1]
		newID := d.ID != "" && string(d.ID) != last.id
		newName := d.ID == "" && d.Function.Name != ""
		if !newID && !newName {
			c = last
		}
	}
	if c == nil {
		a.newCall(d)
		return
	}
	c.add(d)
}

// newCall begins a call.
func (a *answer) newCall(d callDelta) {
	c := &call{index: -1}
	if d.Index != nil {
		c.index = *d.Index
	}
	c.add(d)
	a.calls = append(a.calls, c)
}

func (c *call) add(d callDelta) {
	if c.id == "" {
		c.id = string(d.ID)
	}
	if c.name == "" {
		c.name = string(d.Function.Name)
	}
	c.arguments.WriteString(string(d.Function.Arguments))
	if !wire.Absent(d.ExtraContent) {
		c.extra = d.ExtraContent
	}
}

func (a *answer) response(e conclusion, u *usage, name string) *model.Response {
	r := &model.Response{Text: a.text.String(), Usage: u.proto(), Model: name}
	for _, c := range a.calls {
		r.ToolCalls = append(r.ToolCalls, adapter.ToolCall(c.id, c.name, c.arguments.String()))
	}
	if a.refused > 0 && e.refusal == "" {
		e.refusal = refusalText
	}
	r.FinishReason, r.Refusal = e.finishReason(r.ToolCalls), e.refusal
	r.Parts = a.parts()
	return r
}

// parts returns the answer in the server's order; nil if text and calls say everything.
func (a *answer) parts() []*harnessv1.Part {
	var parts []*harnessv1.Part
	told := false // parts have more than text and calls
	add := func(p *harnessv1.Part, reasoning bool) {
		parts = append(parts, p)
		told = told || reasoning || p.GetOpaque() != nil
	}
	extra, lastText := extraOpaque(a.extra), a.lastText()
	for i, p := range a.order {
		switch {
		case p.n > 0:
			part := &harnessv1.Part{Kind: &harnessv1.Part_Text{Text: p.n}}
			if i == lastText {
				part.Opaque, extra = extra, nil
			}
			add(part, false)
		case p.chunk != nil:
			add(reasoningPart(p.chunk.text(), a.chunkOpaque(p.chunk)), true)
		default:
			add(reasoningPart(a.thought.forPeople(), a.thoughtOpaque()), true)
		}
	}
	if extra != nil {
		add(reasoningPart("", extra), true)
	}
	for i, c := range a.calls {
		add(&harnessv1.Part{Kind: &harnessv1.Part_Call{Call: uint32(i)}, Opaque: extraOpaque(c.extra)}, false)
	}
	if !told {
		return nil
	}
	return parts
}

// lastText returns the index of the last text in the order; -1 if there is none.
func (a *answer) lastText() int {
	for i := len(a.order) - 1; i >= 0; i-- {
		if a.order[i].n > 0 {
			return i
		}
	}
	return -1
}

func reasoningPart(text string, opaque *harnessv1.Opaque) *harnessv1.Part {
	return &harnessv1.Part{
		Kind:   &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline(text)}},
		Opaque: opaque,
	}
}

// extraOpaque returns the opaque part of an extra_content; nil without one.
func extraOpaque(extra json.RawMessage) *harnessv1.Opaque {
	if len(extra) == 0 {
		return nil
	}
	return adapter.Opaque([]byte(extraPrefix + string(extra) + "}"))
}
