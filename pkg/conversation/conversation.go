// Package conversation folds a run's conversation out of its log and renders
// the view of it that a model can be sent.
//
// The stored messages are never changed. A view is always a valid
// conversation: every call is answered exactly once, directly after the
// message that holds it; nothing answers a call that is not there; no message
// is empty; at least one is the user's.
package conversation

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// Conversation is the concatenation of the messages of a log up to a version.
type Conversation struct {
	// Version up to which it is folded; 0 when empty.
	Version uint64
	// Messages in order; shared, not to be changed.
	Messages []*harnessv1.Message
	// Bytes of the messages.
	Bytes uint64

	calls *callIDs
}

// callIDs is shared by everyone who holds a conversation, also by one who has
// lost the run's step and does not know it yet.
type callIDs struct {
	mu  sync.RWMutex
	ids map[string]struct{}
	// calls that have no result yet, and the outcomes of those that have one
	open     map[string]*harnessv1.ToolCall
	outcomes map[uint64]span
}

// span is where an outcome came about: ids of the first and the last message, and of
// the last one of an earlier turn than that.
type span struct {
	first, earlier, last uint64
	turn                 uint32 // of the last one
}

// Fold adds the messages of a record that follows the version folded so far.
func (c *Conversation) Fold(rec *harnessv1.Record) {
	if c.calls == nil {
		c.calls = &callIDs{ids: map[string]struct{}{}, open: map[string]*harnessv1.ToolCall{}, outcomes: map[uint64]span{}}
	}
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	for _, m := range rec.GetAppended() {
		c.Messages = append(c.Messages, m)
		c.Bytes += uint64(len(content.Text(m.GetContent()))) + 256
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			c.Bytes += c.calls.answer(m)
		}
		for _, call := range m.GetToolCalls() {
			c.calls.ids[call.GetId()] = struct{}{}
			c.calls.open[call.GetId()] = call
			c.Bytes += uint64(len(content.Text(call.GetArguments()))) + 128
		}
	}
	c.Version = rec.GetVersion()
}

// answer notes the outcome of a call; mu is held. Results of calls that were passed
// on with other arguments than the model's count with the model's.
func (c *callIDs) answer(m *harnessv1.Message) (bytes uint64) {
	call := c.open[m.GetToolCallId()]
	if call == nil {
		return 0
	}
	delete(c.open, m.GetToolCallId())
	strict, _ := progress.Signature(m.GetToolName(), content.Key(call.GetArguments()), content.DigestOf(m.GetContent()))
	at, known := c.outcomes[strict]
	if !known {
		at.first, bytes = m.GetId(), outcomeBytes
	}
	if known && m.GetTurnNumber() != at.turn {
		at.earlier = at.last
	}
	at.last, at.turn = m.GetId(), m.GetTurnNumber()
	c.outcomes[strict] = at
	return bytes
}

// outcomeBytes is about what an outcome costs.
const outcomeBytes = 48

// Seen says whether an outcome, by the signature of pkg/progress, came about in the
// messages from first up to but not including limit, where limit is behind all turns
// but the newest.
func (c *Conversation) Seen(signature, first, limit uint64) bool {
	if c.calls == nil {
		return false
	}
	c.calls.mu.RLock()
	defer c.calls.mu.RUnlock()
	at, known := c.calls.outcomes[signature]
	within := func(id uint64) bool { return id >= first && id < limit && id > 0 }
	return known && (within(at.first) || within(at.earlier) || within(at.last))
}

// HasCall says whether a call with this id is in the conversation.
func (c *Conversation) HasCall(id string) bool {
	if c.calls == nil {
		return false
	}
	c.calls.mu.RLock()
	defer c.calls.mu.RUnlock()
	_, ok := c.calls.ids[id]
	return ok
}

// What stands where a call has no result, and where its result is empty.
// Neither is ever stored.
const (
	unanswered = "No result of this call was recorded."
	noOutput   = "(no output)"
)

// View arranges messages so that a model can be sent them: results directly
// behind their calls, in the order of the calls; a placeholder for a call
// without a result and for an empty one; results without a call, second results
// and blank messages left out. Messages that arrived between a call and its result come after the
// result. Arranging a view again changes nothing.
func View(messages []*harnessv1.Message) []*harnessv1.Message {
	results := make(map[string]*harnessv1.Message, len(messages)/2)
	for _, m := range messages {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL && results[m.GetToolCallId()] == nil {
			results[m.GetToolCallId()] = m
		}
	}
	view := make([]*harnessv1.Message, 0, len(messages))
	for _, m := range messages {
		switch {
		case m.GetRole() == harnessv1.Role_ROLE_TOOL:
			continue // placed behind its call
		case len(m.GetToolCalls()) == 0 && empty(m.GetContent()):
			continue
		}
		view = append(view, m)
		for _, call := range m.GetToolCalls() {
			result := results[call.GetId()]
			switch {
			case result == nil:
				result = &harnessv1.Message{
					Role:       harnessv1.Role_ROLE_TOOL,
					Kind:       harnessv1.MessageKind_MESSAGE_KIND_REPAIR,
					Content:    content.Inline(unanswered),
					ToolCallId: call.GetId(),
					ToolName:   call.GetName(),
					IsError:    true,
				}
			case empty(result.GetContent()):
				result = proto.CloneOf(result)
				result.Content = content.Inline(noOutput)
			}
			view = append(view, result)
		}
	}
	return view
}

// empty says that there is nothing to read: providers refuse blank messages.
func empty(c *harnessv1.Content) bool {
	return c.GetBlob() == nil && strings.TrimSpace(c.GetInline()) == ""
}
