package view

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Item is a message of a view.
type Item struct {
	// Message as it is sent, but for blobs and for texts that are shortened to Limit. It is
	// shared and must not be changed.
	Message *harnessv1.Message
	// First and Last are the messages of the conversation that it shows; 0 for the result
	// of a call without one.
	First, Last uint64
	// Action is the change of the message, and Mark the watermark that requires it; nil if nothing was.
	Action harnessv1.CompactionAction
	Mark   *harnessv1.Watermark
	// Limit is the number of tokens that are shown of the content; 0: as many as of any
	// other message.
	Limit uint32
	// Tokens as it is sent, and without compaction.
	Tokens, Original uint32
}

// renderer makes the messages of a view.
type renderer struct {
	rules    *Rules
	x        *Index
	messages []*harnessv1.Message // all of the conversation
}

// item returns how a message is shown; ok is false if it is not.
func (r *renderer) item(e *Entry) (it Item, ok bool) {
	m := r.messages[e.ID-1]
	action, w := r.rules.Action(e)
	it = Item{Message: m, First: e.ID, Last: e.ID, Action: action, Mark: w, Tokens: r.rules.Shown(e), Original: e.Tokens}
	switch action {
	case clearing:
		it.Message = r.cleared(e, m)
	case externalize:
		it.Message = r.externalized(m, w)
	case shorten:
		it.Limit = w.GetShownTokens()
	case drop, summarize:
		if e.IsResult() || !r.showsResult(e) {
			return Item{}, false
		}
		it.Message = bare(m)
	default: // the message itself
	}
	if r.rules.MediaCleared(e) {
		it.Message = withoutMedia(it.Message)
	}
	return r.withoutCalls(e, it)
}

// cleared returns the message that a cleared one is shown as.
func (r *renderer) cleared(e *Entry, m *harnessv1.Message) *harnessv1.Message {
	text := replacedText(m)
	if e.IsResult() {
		text = clearedText(m, r.call(e, m))
	}
	return withText(m, text)
}

// call returns the call of a result; nil if there is none.
func (r *renderer) call(e *Entry, m *harnessv1.Message) *harnessv1.ToolCall {
	if e.Call == 0 {
		return nil
	}
	for _, c := range r.messages[e.Call-1].GetToolCalls() {
		if c.GetId() == m.GetToolCallId() {
			return c
		}
	}
	return nil
}

// externalized returns the message that an externalised one is shown as.
func (r *renderer) externalized(m *harnessv1.Message, w *harnessv1.Watermark) *harnessv1.Message {
	ref := OriginalRef(m)
	if w.GetClass() == oldUser {
		return withText(m, firstLine(m.GetContent(), ref))
	}
	text := content.Text(m.GetContent())
	if size(m.GetContent()) > 2*shownHead {
		text = briefText(m.GetContent(), ref, shownHead)
	}
	brief := withText(m, text)
	for _, c := range m.GetToolCalls() {
		brief.ToolCalls = append(brief.ToolCalls, &harnessv1.ToolCall{Id: c.GetId(), Name: c.GetName(), Arguments: briefArguments(c.GetArguments(), ref)})
	}
	return brief
}

// showsResult reports whether a result of a message's calls is shown.
func (r *renderer) showsResult(e *Entry) bool {
	for _, id := range e.Results {
		if result := r.x.Entry(id); result != nil && !r.rules.Hides(result) {
			return true
		}
	}
	return false
}

// withoutCalls leaves out the calls of a message whose results are not shown, and the
// message if nothing is left of it.
func (r *renderer) withoutCalls(e *Entry, it Item) (Item, bool) {
	hidden := 0
	for _, id := range e.Results {
		if result := r.x.Entry(id); result != nil && r.rules.Hides(result) {
			hidden++
		}
	}
	if hidden == 0 {
		return it, true
	}
	m := withText(it.Message, "")
	m.Content = it.Message.GetContent()
	for i, c := range it.Message.GetToolCalls() {
		if result := r.x.Entry(e.Results[i]); result == nil || !r.rules.Hides(result) {
			m.ToolCalls = append(m.ToolCalls, c)
		}
	}
	if len(m.GetToolCalls()) == 0 && blank(m.GetContent()) {
		return Item{}, false
	}
	it.Message = m
	if it.Action == include {
		it.Action, it.Mark = drop, r.rules.marks[drop][anyResult]
	}
	return it, true
}

// withText returns a message with another text and without calls and parts.
func withText(m *harnessv1.Message, text string) *harnessv1.Message {
	return &harnessv1.Message{
		Id: m.GetId(), Role: m.GetRole(), Kind: m.GetKind(), Content: content.Inline(text), ToolCallId: m.GetToolCallId(), ToolName: m.GetToolName(),
		IsError: m.GetIsError(), TurnNumber: m.GetTurnNumber(), Kept: m.GetKept(), Parts: mediaOf(m),
	}
}

// bare returns a message of the model with its calls alone.
func bare(m *harnessv1.Message) *harnessv1.Message {
	b := withText(m, "")
	b.ToolCalls = m.GetToolCalls()
	return b
}

// mediaOf returns the images and documents of a message that is no result and not the
// model's. A shortened result keeps only its text.
func mediaOf(m *harnessv1.Message) []*harnessv1.Part {
	if m.GetRole() != harnessv1.Role_ROLE_USER {
		return nil
	}
	return m.GetParts()
}

// withoutMedia returns a message with lines instead of its images and documents.
func withoutMedia(m *harnessv1.Message) *harnessv1.Message {
	c := proto.CloneOf(m)
	c.Parts = nil
	text := content.Text(m.GetContent())
	if b := m.GetContent().GetBlob(); b != nil { // the lines follow the beginning of the text
		text = briefText(m.GetContent(), Ref(m.GetId()), shownHead)
	}
	for _, p := range m.GetParts() {
		if file := p.GetMedia(); file != nil {
			if text != "" {
				text += "\n"
			}
			text += mediaText(file, OriginalRef(m))
			continue
		}
		c.Parts = append(c.Parts, p)
	}
	c.Content = content.Inline(text)
	return opaque.Without(c)
}
