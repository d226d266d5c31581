package turn

import (
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// maxParts bounds the parts of a message.
const maxParts = 256

// setParts sets the parts of an answer. If they do not cover the stored answer, such as one
// with more calls than are taken, nothing of it can go back to the provider unchanged: then
// only the text of the reasoning is stored.
func setParts(m *harnessv1.Message, r *model.Response) {
	if len(r.Parts) == 0 {
		return
	}
	if r.Origin != nil && len(r.ToolCalls) == len(m.GetToolCalls()) && covers(m, r.Parts) {
		for _, p := range r.Parts {
			m.Parts = append(m.Parts, proto.CloneOf(p))
		}
		m.Origin = proto.CloneOf(r.Origin)
		return
	}
	m.Parts = readable(m, r.Parts)
}

// covers reports whether parts cover the text and the calls of a message, in order.
func covers(m *harnessv1.Message, parts []*harnessv1.Part) bool {
	text, calls := m.GetContent().GetInline(), 0
	for _, p := range parts {
		switch kind := p.GetKind().(type) {
		case *harnessv1.Part_Text:
			if kind.Text == 0 || kind.Text > uint64(len(text)) || !utf8.ValidString(text[:kind.Text]) {
				return false
			}
			text = text[kind.Text:]
		case *harnessv1.Part_Call:
			if int(kind.Call) != calls {
				return false
			}
			calls++
		case *harnessv1.Part_Reasoning:
			if !utf8.ValidString(kind.Reasoning.GetText().GetInline()) {
				return false
			}
		default:
			return false
		}
	}
	return text == "" && calls == len(m.GetToolCalls()) && len(parts) <= maxParts
}

// readable returns parts with the text of the reasoning and without anything opaque,
// followed by the text and the calls of the message.
func readable(m *harnessv1.Message, parts []*harnessv1.Part) []*harnessv1.Part {
	var out []*harnessv1.Part
	for _, p := range parts {
		if text := p.GetReasoning().GetText().GetInline(); text != "" && len(out)+2+len(m.GetToolCalls()) < maxParts {
			out = append(out, &harnessv1.Part{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{
				Text: content.Inline(content.Cut(text, len(text))),
			}}})
		}
	}
	if len(out) == 0 {
		return nil
	}
	if n := len(m.GetContent().GetInline()); n > 0 {
		out = append(out, &harnessv1.Part{Kind: &harnessv1.Part_Text{Text: uint64(n)}})
	}
	for i := range m.GetToolCalls() {
		out = append(out, &harnessv1.Part{Kind: &harnessv1.Part_Call{Call: uint32(i)}})
	}
	return out
}
