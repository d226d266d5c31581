// Package conversation folds the conversation of a run from its log and makes the
// view of it that a model is sent.
//
// Stored messages are never changed. A view is always a valid conversation: every
// call has exactly one result, directly after the message of the call; no result is
// without a call; no message is empty; at least one is the user's.
package conversation

import (
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Conversation is the concatenation of the messages of a log up to a version.
type Conversation struct {
	// Version of the last record that was folded; 0 if there is none.
	Version uint64
	// Messages in order; shared, must not be changed.
	Messages []*harnessv1.Message
	// Bytes of the messages.
	Bytes uint64
	// Weights are the tokens of the messages as models are sent them, by id-1, as far as
	// records state them; 0: not known. Shared, must not be changed.
	Weights []uint32

	calls *callIndex
}

// Weight returns the tokens of a message; 0: not known.
func (c *Conversation) Weight(id uint64) uint32 {
	if id == 0 || id > uint64(len(c.Weights)) {
		return 0
	}
	return c.Weights[id-1]
}

// weigh adds the weights that a record states. A message keeps the weight that was stated
// first.
func (c *Conversation) weigh(w *harnessv1.Weights) {
	for i, tokens := range w.GetTokens() {
		id := w.GetFirstMessage() + uint64(i)
		if id == 0 || id <= uint64(len(c.Weights)) || id > uint64(len(c.Messages)) {
			continue
		}
		for uint64(len(c.Weights)) < id-1 {
			c.Weights = append(c.Weights, 0)
		}
		c.Weights = append(c.Weights, tokens)
		c.Bytes += weightBytes
	}
}

// weightBytes is what a weight needs in memory.
const weightBytes = 4

// callIndex is shared by all copies of a conversation, also with a worker that has
// lost the run's step and has not noticed yet.
type callIndex struct {
	mu  sync.RWMutex
	ids map[string]struct{}
	// open are the calls without a result, outcomes those of the others.
	open     map[string]*harnessv1.ToolCall
	outcomes map[uint64]occurrences
}

// occurrences are where an outcome came about: the ids of the first and the last message of
// the newest turn that it came about in, and of the last message of an earlier turn.
//
// More is not needed: equal outcomes are results of one tool with one text. Only the newest one before the current step counts: it is last, or
// first where a turn continued in a later step, or earlier. Where it is not shown in full no
// older one is: their class and size are equal, and a watermark that has reached a message
// has reached all before it.
type occurrences struct {
	earlier, first, last uint64
	turn                 uint32 // of first and last
}

// Fold adds the messages of a record that follows the version folded so far.
func (c *Conversation) Fold(rec *harnessv1.Record) {
	if c.calls == nil {
		c.calls = &callIndex{ids: map[string]struct{}{}, open: map[string]*harnessv1.ToolCall{}, outcomes: map[uint64]occurrences{}}
	}
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	for _, m := range rec.GetAppended() {
		c.Messages = append(c.Messages, m)
		c.Bytes += uint64(len(content.Text(m.GetContent()))) + 256
		for _, p := range m.GetParts() {
			c.Bytes += uint64(len(p.GetOpaque().GetInline())+len(content.Text(p.GetReasoning().GetText()))+len(p.GetMedia().GetData())) + 128
		}
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			c.Bytes += c.calls.addResult(m)
		}
		for _, call := range m.GetToolCalls() {
			c.calls.ids[call.GetId()] = struct{}{}
			c.calls.open[call.GetId()] = call
			c.Bytes += uint64(len(content.Text(call.GetArguments()))) + 128
		}
	}
	for _, w := range runlog.Weights(rec) {
		c.weigh(w)
	}
	c.Version = rec.GetVersion()
}

// addResult adds the outcome of a call; the caller holds mu. A call that ran with
// other arguments than the model's counts with the model's.
func (c *callIndex) addResult(m *harnessv1.Message) (bytes uint64) {
	call := c.open[m.GetToolCallId()]
	if call == nil {
		return 0
	}
	delete(c.open, m.GetToolCallId())
	signatures := progress.SignOutcome(m.GetToolName(), content.Key(call.GetArguments()), content.DigestOf(m.GetContent()), content.Text(m.GetContent()))
	for i, signature := range signatures {
		if i > 0 && signature == signatures[0] {
			continue // a note has one signature
		}
		at, known := c.outcomes[signature]
		if !known {
			bytes += outcomeBytes
		}
		if !known || m.GetTurnNumber() != at.turn {
			at.earlier, at.first = at.last, m.GetId()
		}
		at.last, at.turn = m.GetId(), m.GetTurnNumber()
		c.outcomes[signature] = at
	}
	return bytes
}

// outcomeBytes is about what an outcome needs in memory.
const outcomeBytes = 48

// NewestOutcome returns the newest message from first up to but not including limit in which
// an outcome came about, by its signature of pkg/progress; 0: none did. limit is the first
// message after the step of the current turn.
func (c *Conversation) NewestOutcome(signature, first, limit uint64) uint64 {
	if c.calls == nil {
		return 0
	}
	c.calls.mu.RLock()
	defer c.calls.mu.RUnlock()
	at := c.calls.outcomes[signature]
	for _, id := range [...]uint64{at.last, at.first, at.earlier} {
		if id > 0 && id < limit {
			if id < first {
				return 0
			}
			return id
		}
	}
	return 0
}

func (c *Conversation) HasCall(id string) bool {
	if c.calls == nil {
		return false
	}
	c.calls.mu.RLock()
	defer c.calls.mu.RUnlock()
	_, ok := c.calls.ids[id]
	return ok
}

// Texts that replace a missing and an empty result. They are never stored.
const (
	unanswered = "No result of this call was recorded."
	noOutput   = "(no output)"
	mediaOnly  = "(the output is attached)"
)

// View returns messages as a model can be sent them: results directly after their
// calls, in the order of the calls; a placeholder for a missing and for an empty
// result. Results without a call, second results and blank messages are left out; one
// with an image or a document is not blank. Messages between a call and its result
// follow the result. The view of a view is the same.
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
			continue // follows its call
		case len(m.GetToolCalls()) == 0 && empty(m.GetContent()) && !hasMedia(m):
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
				text := noOutput
				if hasMedia(result) {
					text = mediaOnly
				}
				result = proto.CloneOf(result)
				result.Content = content.Inline(text)
			}
			view = append(view, result)
		}
	}
	return view
}

// empty reports whether a content is blank: providers refuse blank messages.
func empty(c *harnessv1.Content) bool {
	return c.GetBlob() == nil && strings.TrimSpace(c.GetInline()) == ""
}

// hasMedia reports whether a message has an image or a document.
func hasMedia(m *harnessv1.Message) bool {
	return slices.ContainsFunc(m.GetParts(), func(p *harnessv1.Part) bool { return p.GetMedia() != nil })
}
