package readback

import (
	"context"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// piece is a part of a message's text: a literal, or a content that may be in a blob. file is
// the image or document that a literal names.
type piece struct {
	literal string
	content *harnessv1.Content
	file    *harnessv1.Media
}

func (p piece) size() int {
	if b := p.content.GetBlob(); b != nil {
		return int(min(b.GetSize(), 1<<40))
	}
	return len(p.literal) + len(p.content.GetInline())
}

// noText is the text of a message without any.
const noText = "(no text)"

// piecesOf returns the text of a message in pieces: its content, its calls, and a line for
// each image and document.
func piecesOf(m *harnessv1.Message) []piece {
	var pieces []piece
	line := func(text string) {
		if len(pieces) > 0 {
			text = "\n" + text
		}
		pieces = append(pieces, piece{literal: text})
	}
	if c := m.GetContent(); c.GetBlob() != nil || c.GetInline() != "" {
		pieces = append(pieces, piece{content: c})
	}
	for _, c := range m.GetToolCalls() {
		line("Call of " + c.GetName() + ": ")
		pieces = append(pieces, piece{content: c.GetArguments()})
	}
	for _, p := range m.GetParts() {
		if file := p.GetMedia(); file != nil {
			line(describeMedia(file))
			pieces[len(pieces)-1].file = file
		}
	}
	if len(pieces) == 0 {
		line(noText)
	}
	return pieces
}

// describeMedia returns the line for an image or a document.
func describeMedia(m *harnessv1.Media) string {
	bytes := m.GetBlob().GetSize() + uint64(len(m.GetData()))
	name := ""
	if m.GetName() != "" {
		name = " " + content.OneLine(m.GetName())
	}
	return fmt.Sprintf("[%s%s, %d bytes; it is attached when its message is read without a pattern.]", m.GetType(), name, bytes)
}

// sizeOf returns the size of a message's text in bytes, without reading blobs.
func sizeOf(m *harnessv1.Message) int {
	size := 0
	for _, p := range piecesOf(m) {
		size += p.size()
	}
	return size
}

func (r *Reader) text(ctx context.Context, m *harnessv1.Message) (string, error) {
	var b strings.Builder
	for _, p := range piecesOf(m) {
		b.WriteString(p.literal)
		if p.content.GetBlob() == nil {
			b.WriteString(p.content.GetInline())
			continue
		}
		text, err := r.Text(ctx, p.content)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// span is the messages that a request names.
type span struct {
	ref      string
	messages []*harnessv1.Message // of the run
	first    int                  // the first message of the span, from 1
	last     int
	calls    map[string]place // of the results in the span, by id of the call
}

// place is a call, and the message that it is in.
type place struct {
	message int
	call    *harnessv1.ToolCall
}

func newSpan(messages []*harnessv1.Message, ref string, first, last int) *span {
	s := &span{ref: strings.TrimSpace(ref), messages: messages, first: first, last: last, calls: map[string]place{}}
	for i, m := range messages[:last] {
		for _, c := range m.GetToolCalls() {
			s.calls[c.GetId()] = place{message: i + 1, call: c}
		}
	}
	return s
}

// size returns the size of the span's text in bytes.
func (s *span) size() int {
	size := 0
	for _, m := range s.messages[s.first-1 : s.last] {
		size += sizeOf(m)
	}
	return size
}

// briefArguments bounds the arguments in the heading of a result, in bytes.
const briefArguments = 160

// heading describes a message of the span: its reference, author and turn. from and
// to are the bytes of its text that follow, of size in all.
func (s *span) heading(id, from, to, size int) string {
	m := s.messages[id-1]
	var b strings.Builder
	fmt.Fprintf(&b, "[m%d: %s", id, author(m))
	if m.GetRole() == harnessv1.Role_ROLE_TOOL {
		b.WriteString(" of " + m.GetToolName())
		if at, ok := s.calls[m.GetToolCallId()]; ok {
			if arguments := content.Line(content.Text(at.call.GetArguments()), briefArguments); arguments != "" {
				b.WriteString(" " + arguments)
			}
			fmt.Fprintf(&b, ", called in m%d", at.message)
		}
	}
	if m.GetTurnNumber() > 0 {
		fmt.Fprintf(&b, ", turn %d", m.GetTurnNumber())
	}
	if from > 0 || to < size {
		fmt.Fprintf(&b, ", bytes %d to %d of %d", from, to, size)
	}
	return b.String() + "]\n"
}

// author returns the author of a message as a model reads it.
func author(m *harnessv1.Message) string {
	switch m.GetRole() {
	case harnessv1.Role_ROLE_SYSTEM:
		return "system prompt"
	case harnessv1.Role_ROLE_ASSISTANT:
		return "assistant"
	case harnessv1.Role_ROLE_TOOL:
		if m.GetIsError() {
			return "error result"
		}
		return "result"
	default:
	}
	switch m.GetKind() {
	case harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED:
		return "user"
	case harnessv1.MessageKind_MESSAGE_KIND_ANSWER:
		return "answer of the user"
	default:
	}
	return "harness"
}
