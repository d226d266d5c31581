package responses

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/calls"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// output is an item of a response. Members that the provider does not read are ignored.
type output struct {
	Type    wire.String         `json:"type"`
	ID      wire.String         `json:"id"`
	Phase   wire.String         `json:"phase"`
	Content wire.List[fragment] `json:"content"`
	CallID  wire.String         `json:"call_id"`
	Name    wire.String         `json:"name"`
	// Arguments may also be an object, whose JSON is kept.
	Arguments wire.String         `json:"arguments"`
	Summary   wire.List[fragment] `json:"summary"`
	Encrypted json.RawMessage     `json:"encrypted_content"`
}

// fragment is a piece of the content or of the summary of an item.
type fragment struct {
	Type    wire.String `json:"type"`
	Text    wire.String `json:"text"`
	Refusal wire.String `json:"refusal"`
}

// item is an item of a response as far as it has arrived.
type item struct {
	index int64 // its place in the response
	output
	opened bool            // its start has arrived
	raw    json.RawMessage // as it was closed; nil: it is open
	name   string          // of a call whose arguments ended before it was closed
	pieces pieces

	streamed int // bytes of the deltas
	size     int // bytes that count for the size of the answer
}

// pieces are the deltas of an item.
type pieces struct {
	text, refusal, arguments wire.LongText
	reasoning                wire.LongText
	part                     reasoningPart // that the reasoning ends with
}

// reasoningPart is a part of the reasoning of an item.
type reasoningPart struct {
	kind  string
	index wire.Int
}

// text returns the text of a message.
func (i *item) text() string {
	var b strings.Builder
	for _, f := range i.Content {
		b.WriteString(string(f.Text))
	}
	if b.Len() == 0 {
		return i.pieces.text.String()
	}
	return b.String()
}

// refusal returns the text that the model wrote instead of an answer.
func (i *item) refusal() (text string, refused bool) {
	for _, f := range i.Content {
		if f.Type == "refusal" {
			return string(f.Refusal), true
		}
	}
	return i.pieces.refusal.String(), i.pieces.refusal.Len() > 0
}

// reasoning returns the text of reasoning for people: the summary, or the reasoning
// itself where the service gives it.
func (i *item) reasoning() string {
	for _, list := range [][]fragment{i.Summary, i.Content} {
		var texts []string
		for _, f := range list {
			if f.Text != "" {
				texts = append(texts, string(f.Text))
			}
		}
		if len(texts) > 0 {
			return strings.Join(texts, partBreak)
		}
	}
	return i.pieces.reasoning.String()
}

// arguments returns the arguments of a call: those that came whole, or if they are empty those
// of its deltas.
func (i *item) arguments() string {
	said, _ := calls.Arguments(string(i.Arguments))
	if streamed := i.pieces.arguments.String(); said == "" || calls.Empty(said) && !calls.Empty(streamed) {
		said, _ = calls.Arguments(streamed)
	}
	return said
}

// opaque returns what goes back with reasoning: the item as it was closed, if it has
// encrypted content. JSON is in UTF-8: services refuse a request that is not.
func (i *item) opaque() *harnessv1.Opaque {
	var encrypted string
	if json.Unmarshal(i.Encrypted, &encrypted) != nil || encrypted == "" || !utf8.Valid(i.raw) {
		return nil
	}
	return adapter.Opaque(i.raw)
}

// builder builds an answer from its items.
type builder struct {
	response model.Response
	text     wire.LongText
	more     bool // the parts say more than text and calls
	// reasoned has the ids of the reasoning in the answer, and whether it goes back.
	reasoned map[wire.String]bool
}

// answerOf returns the answer that items add up to, without its finish reason.
func answerOf(items []*item) *model.Response {
	b := builder{reasoned: map[wire.String]bool{}}
	for _, i := range items {
		switch i.Type {
		case itemMessage:
			b.message(i)
		case itemCall:
			b.call(i)
		case itemReasoning:
			b.reasoning(i)
		}
	}
	b.response.Text = b.text.String()
	if !b.more {
		b.response.Parts = nil
	}
	return &b.response
}

func (b *builder) message(i *item) {
	text := i.text()
	if text == "" {
		return
	}
	opaque := phaseOpaque(string(i.Phase))
	b.more = b.more || opaque != nil || len(b.response.ToolCalls) > 0
	b.text.WriteString(text)
	b.part(&harnessv1.Part{Kind: &harnessv1.Part_Text{Text: uint64(len(text))}, Opaque: opaque})
}

func (b *builder) call(i *item) {
	at := uint32(len(b.response.ToolCalls)) //nolint:gosec // bounded by the size of a body
	b.response.ToolCalls = append(b.response.ToolCalls, adapter.ToolCall(string(i.CallID), i.callName(), i.arguments()))
	b.part(&harnessv1.Part{Kind: &harnessv1.Part_Call{Call: at}})
}

// reasoning adds reasoning. Servers repeat it with the same id at another place, and the
// service refuses a request that has an id twice: what repeats an id is left out, unless
// it is the first with the id that can go back.
func (b *builder) reasoning(i *item) {
	text, opaque := i.reasoning(), i.opaque()
	if text == "" && opaque == nil {
		return
	}
	if i.ID != "" {
		if returned, repeated := b.reasoned[i.ID]; repeated && (returned || opaque == nil) {
			return
		}
		b.reasoned[i.ID] = opaque != nil
	}
	b.more = true
	b.part(&harnessv1.Part{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline(text)}}, Opaque: opaque})
}

func (b *builder) part(p *harnessv1.Part) { b.response.Parts = append(b.response.Parts, p) }

func (i *item) callName() string {
	if i.Name == "" {
		return i.name
	}
	return string(i.Name)
}

// phaseOpaque returns what goes back with a text: the phase of its message.
func phaseOpaque(phase string) *harnessv1.Opaque {
	if phase == "" {
		return nil
	}
	raw, _ := json.Marshal(map[string]string{"phase": phase}) // strings always encode
	return adapter.Opaque(raw)
}

// refusalOf returns the category of a refusal; refused reports whether a message is one.
func refusalOf(items []*item) (category string, refused bool) {
	for _, i := range items {
		if i.Type != itemMessage {
			continue
		}
		if text, refused := i.refusal(); refused {
			return strings.TrimSuffix(adapter.Clean("refusal: "+text), ":"), true
		}
	}
	return "", false
}
