package openai

import (
	"encoding/json"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/calls"
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
	calls   calls.Assembler
	extras  []json.RawMessage // extra_content of the calls, by their numbers
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

// addCall takes a piece of a call; whole reports that it is all of one.
func (a *answer) addCall(d callDelta, whole bool) {
	at, begun := a.calls.Add(calls.Piece{
		Index: (*int64)(d.Index), ID: string(d.ID), Name: string(d.Function.Name), Arguments: string(d.Function.Arguments), Begins: whole,
	})
	if begun {
		a.extras = append(a.extras, nil)
	}
	if at >= 0 && !wire.Absent(d.ExtraContent) {
		a.extras[at] = d.ExtraContent
	}
}

// whole reports whether the answer can be at its end: each call has its name and all of its
// arguments, or there are none and a text has come.
func (a *answer) whole() bool {
	if a.calls.Len() == 0 {
		return a.text.Len() > 0
	}
	return !slices.ContainsFunc(a.calls.Calls(), func(c calls.Call) bool { return c.Name == "" || !c.Complete })
}

func (a *answer) response(e conclusion, u *usage, name string) *model.Response {
	r := &model.Response{Text: a.text.String(), Usage: u.proto(), Model: name}
	joined := a.calls.Calls()
	for _, c := range joined {
		r.ToolCalls = append(r.ToolCalls, adapter.ToolCall(c.ID, c.Name, c.Arguments))
	}
	if a.refused > 0 && e.refusal == "" {
		e.refusal = refusalText
	}
	r.FinishReason, r.Refusal = e.finishReason(r.ToolCalls), e.refusal
	r.Parts = a.parts(joined)
	return r
}

// parts returns the answer in the server's order; nil if text and calls say everything.
func (a *answer) parts(joined []calls.Call) []*harnessv1.Part {
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
	for i, c := range joined {
		add(&harnessv1.Part{Kind: &harnessv1.Part_Call{Call: uint32(i)}, Opaque: extraOpaque(a.extras[c.At])}, false)
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
