package view

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// Entry describes a message for the rules: everything but its contents.
type Entry struct {
	// ID of the message; the index of the entry is ID-1.
	ID uint64
	// Turn in which the message was appended.
	Turn uint32
	// Class of the message; unspecified for the system prompt and for guidance without a
	// topic.
	Class harnessv1.MessageClass
	// Role of its author.
	Role harnessv1.Role
	// Tokens of the message as it is sent without compaction.
	Tokens uint32
	// Weighed is false if Tokens is an estimate from the size.
	Weighed bool
	// Bytes of its content.
	Bytes uint64
	// Media is the room that its images and documents need in a request.
	Media media.Room
	// Kept is true for the system prompt and for what compaction leaves alone. The user's
	// own messages have the class USER instead.
	Kept bool
	// ReplacedBy is the message that replaces this guidance, this read of a plan file, or
	// this report of finished work, which was not accepted then; 0: none does.
	ReplacedBy uint64
	// Call is the message with the call of a result; 0 for other messages, and for a
	// result without one.
	Call uint64
	// Results are those of the calls of an assistant message, in the order of the calls;
	// 0 where there is none yet.
	Results []uint64

	externalizeTokens uint32 // of the message, instead of the watermark's
	stub, brief       uint32 // tokens when cleared and when externalised
	callTokens        uint32 // of the call of a result
	textTokens        uint32 // of texts and calls, estimated
	mediaTokens       uint32 // of images and documents, as the model is sent them
	calls             uint32 // number of calls
}

// IsUser reports whether the message is one of the user's own.
func (e *Entry) IsUser() bool { return e.Class == harnessv1.MessageClass_MESSAGE_CLASS_USER }

// IsResult reports whether the message is the result of a call.
func (e *Entry) IsResult() bool { return e.Role == harnessv1.Role_ROLE_TOOL }

// HasMedia reports whether the message has images or documents.
func (e *Entry) HasMedia() bool { return e.Media.Items > 0 }

// newEntry describes a message. tokens is its weight, 0 if it has none.
func newEntry(m *harnessv1.Message, tokens uint32) Entry {
	e := Entry{
		ID: m.GetId(), Turn: m.GetTurnNumber(), Role: m.GetRole(), Class: classOf(m), Kept: m.GetKept(),
		Bytes: size(m.GetContent()), externalizeTokens: m.GetExternalizeTokens(), calls: uint32(len(m.GetToolCalls())), //nolint:gosec // a few
	}
	if e.IsUser() {
		e.Kept = false
	}
	bytes := e.Bytes
	for _, c := range m.GetToolCalls() {
		bytes += size(c.GetArguments()) + uint64(len(c.GetName())+len(c.GetId()))
	}
	for _, p := range m.GetParts() {
		bytes += uint64(len(p.GetOpaque().GetInline())) + p.GetOpaque().GetBlob().GetSize()
	}
	e.Media = media.MessageRoom(m)
	e.textTokens, e.mediaTokens = clamp(framing+bytes/bytesPerToken), clamp(media.MessageTokens(m, nil))
	e.Tokens = clamp(uint64(e.textTokens) + uint64(e.mediaTokens))
	e.weigh(tokens)
	e.brief = briefTokens(m)
	return e
}

// bytesPerToken is the usual ratio.
const bytesPerToken = 4

// framing is the number of tokens that frame a message.
const framing = 4

// weigh sets the weight of a message that has none; 0 is no weight. The weight shows how much
// of it are images and documents: next to nothing if the model takes none.
func (e *Entry) weigh(tokens uint32) {
	if e.Weighed || tokens == 0 {
		return
	}
	e.Tokens, e.Weighed = tokens, true
	if e.mediaTokens > 0 {
		e.mediaTokens = tokens - min(tokens, e.textTokens)
	}
}

// CallTokens returns the tokens of the call of a result.
func (e *Entry) CallTokens() uint32 { return e.callTokens }

func classOf(m *harnessv1.Message) harnessv1.MessageClass {
	switch m.GetRole() {
	case harnessv1.Role_ROLE_TOOL:
		return classOfResult(m.GetDurability())
	case harnessv1.Role_ROLE_ASSISTANT:
		return harnessv1.MessageClass_MESSAGE_CLASS_ASSISTANT
	case harnessv1.Role_ROLE_USER:
		switch {
		case m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT || m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_ANSWER,
			m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED:
			return harnessv1.MessageClass_MESSAGE_CLASS_USER
		case m.GetTopic() != "":
			return harnessv1.MessageClass_MESSAGE_CLASS_REPLACED_GUIDANCE
		}
	default: // the system prompt
	}
	return harnessv1.MessageClass_MESSAGE_CLASS_UNSPECIFIED
}

// classOfResult returns the class of a result. A result without durability is anchoring.
func classOfResult(d harnessv1.Durability) harnessv1.MessageClass {
	switch d {
	case harnessv1.Durability_DURABILITY_EPHEMERAL:
		return harnessv1.MessageClass_MESSAGE_CLASS_EPHEMERAL
	case harnessv1.Durability_DURABILITY_REPLAYABLE:
		return harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE
	case harnessv1.Durability_DURABILITY_NON_REPLAYABLE:
		return harnessv1.MessageClass_MESSAGE_CLASS_NON_REPLAYABLE
	default:
	}
	return harnessv1.MessageClass_MESSAGE_CLASS_ANCHORING
}

// completion begins the keys of reports of finished work: of the model's message, and of
// the result of its call.
const completion = "completion:"

// replaces returns the key of what a message replaces; empty if it replaces nothing.
func replaces(m *harnessv1.Message) string {
	switch {
	case m.GetKeptContent() == harnessv1.KeptContent_KEPT_CONTENT_PLAN_FILE:
		return "plan:" + preserved(m, "path")
	case m.GetKeptContent() == harnessv1.KeptContent_KEPT_CONTENT_COMPLETION:
		return completion + m.GetRole().String()
	case m.GetRole() == harnessv1.Role_ROLE_USER && m.GetTopic() != "":
		return "topic:" + m.GetTopic()
	}
	return ""
}

// preserved returns a preserved field of a result; empty if it has none of that name.
func preserved(m *harnessv1.Message, name string) string {
	for _, f := range m.GetPreserved() {
		if f.GetName() == name {
			return f.GetValue()
		}
	}
	return ""
}

// size returns the size of a content in bytes, wherever it is stored.
func size(c *harnessv1.Content) uint64 {
	if b := c.GetBlob(); b != nil {
		return b.GetSize()
	}
	return uint64(len(c.GetInline()))
}

// Estimates of placeholders, in bytes a token: placeholders hold names and numbers, which
// need more tokens than prose.
const placeholderRatio = 3

// stubTokens returns the tokens of a cleared result.
func stubTokens(m *harnessv1.Message, call *harnessv1.ToolCall) uint32 {
	n := 80 + len(m.GetToolName()) + min(len(content.Text(call.GetArguments())), shownArguments)
	for _, f := range m.GetPreserved() {
		n += len(f.GetName()) + len(f.GetValue()) + 4
	}
	return clamp(framing + uint64(n/placeholderRatio))
}

// briefTokens returns the tokens of an externalised message.
func briefTokens(m *harnessv1.Message) uint32 {
	n := min(len(content.Text(m.GetContent())), shownHead) + 100
	for _, c := range m.GetToolCalls() {
		n += len(c.GetId()) + len(c.GetName()) + min(len(content.Text(c.GetArguments())), 2*shownHead)
	}
	return clamp(framing + uint64(n/placeholderRatio))
}

// callTokens returns the tokens of a call at least.
func callTokens(c *harnessv1.ToolCall) uint32 {
	return clamp((size(c.GetArguments()) + uint64(len(c.GetName())+len(c.GetId()))) / (bytesPerToken + 1))
}

// blank reports whether a content has nothing to show.
func blank(c *harnessv1.Content) bool {
	return c.GetBlob() == nil && strings.TrimSpace(c.GetInline()) == ""
}

func clamp(n uint64) uint32 { return uint32(min(n, 1<<32-1)) }
