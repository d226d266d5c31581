package view

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// Index describes the messages of a conversation. It grows with it: Add reads only the messages that are
// new. It is not safe for concurrent use.
type Index struct {
	// Entries of the messages, by ID-1.
	Entries []Entry
	// Lasting are the messages that no summary hides, in order: the system prompt, the
	// user's own, those that are kept, the calls of results that are kept, and the results
	// of calls that are kept.
	Lasting []uint64
	// Media is the room that all images and documents need in a request.
	Media media.Room

	newest  map[string]uint64 // message that replaces earlier ones, by what it replaces
	calls   map[string]place  // calls without a result, by id
	weighed int               // entries whose weight was looked up and is known
}

// place is a call in the conversation.
type place struct {
	message uint64
	call    int
	of      *harnessv1.ToolCall
}

// Add adds the messages of c that the index does not have, and the weights that have
// become known. It returns the first message that has changed and is not new; 0 if there
// is none.
func (x *Index) Add(c *conversation.Conversation) (changed uint64) {
	if x.newest == nil {
		x.newest, x.calls = map[string]uint64{}, map[string]place{}
	}
	for i := x.weighed; i < min(len(c.Weights), len(x.Entries)); i++ {
		if e := &x.Entries[i]; c.Weights[i] > 0 && !e.Weighed {
			e.weigh(c.Weights[i])
			if changed == 0 {
				changed = e.ID
			}
		}
	}
	for _, m := range c.Messages[len(x.Entries):] {
		x.add(m, c.Weight(m.GetId()))
	}
	x.weighed = min(len(c.Weights), len(x.Entries))
	return changed
}

func (x *Index) add(m *harnessv1.Message, tokens uint32) {
	e := newEntry(m, tokens)
	e.ID = uint64(len(x.Entries)) + 1
	if key := replaces(m); key != "" {
		if before := x.newest[key]; before != 0 {
			x.Entries[before-1].ReplacedBy = e.ID
		}
		x.newest[key] = e.ID
	}
	if e.IsUser() { // further work: the report before it lasts
		delete(x.newest, completion+harnessv1.Role_ROLE_ASSISTANT.String())
		delete(x.newest, completion+harnessv1.Role_ROLE_TOOL.String())
	}
	if len(m.GetToolCalls()) > 0 {
		e.Results = make([]uint64, len(m.GetToolCalls()))
		for i, c := range m.GetToolCalls() {
			x.calls[c.GetId()] = place{message: e.ID, call: i, of: c}
		}
	}
	if e.IsResult() {
		if p, ok := x.calls[m.GetToolCallId()]; ok {
			delete(x.calls, m.GetToolCallId())
			e.Call, e.callTokens = p.message, callTokens(p.of)
			x.Entries[p.message-1].Results[p.call] = e.ID
			e.stub = stubTokens(m, p.of)
		}
	}
	x.Entries = append(x.Entries, e)
	x.Media = x.Media.Plus(e.Media)
	call := x.Entry(e.Call)
	if e.Kept || e.IsUser() || e.Role == harnessv1.Role_ROLE_SYSTEM || call != nil && call.Kept {
		if i, found := slices.BinarySearch(x.Lasting, e.Call); !found && e.Call > 0 {
			x.Lasting = slices.Insert(x.Lasting, i, e.Call)
		}
		x.Lasting = append(x.Lasting, e.ID)
	}
}

// Between calls f with the entries of the messages from first to last, in order, until it
// returns false. Of those up to hidden, which a summary hides, it passes only the lasting
// ones.
func (x *Index) Between(first, last, hidden uint64, f func(e *Entry) bool) {
	last = min(last, uint64(len(x.Entries)))
	i, _ := slices.BinarySearch(x.Lasting, first)
	for ; i < len(x.Lasting) && x.Lasting[i] <= min(hidden, last); i++ {
		if !f(&x.Entries[x.Lasting[i]-1]) {
			return
		}
	}
	for id := max(first, hidden+1, 1); id <= last; id++ {
		if !f(&x.Entries[id-1]) {
			return
		}
	}
}

// Entry returns the entry of a message; nil if there is no such message.
func (x *Index) Entry(id uint64) *Entry {
	if id == 0 || id > uint64(len(x.Entries)) {
		return nil
	}
	return &x.Entries[id-1]
}

// Goal returns the first of the user's own messages; 0 if there is none.
func (x *Index) Goal() uint64 {
	for i := range x.Entries {
		if x.Entries[i].IsUser() {
			return x.Entries[i].ID
		}
	}
	return 0
}

// Turn returns the turn of the newest message.
func (x *Index) Turn() uint32 {
	if len(x.Entries) == 0 {
		return 0
	}
	return x.Entries[len(x.Entries)-1].Turn
}

// Weigh adds weights that were observed. A message keeps the weight that it has.
func (x *Index) Weigh(w *harnessv1.Weights) {
	for i, tokens := range w.GetTokens() {
		if e := x.Entry(w.GetFirstMessage() + uint64(i)); e != nil {
			e.weigh(tokens)
		}
	}
}

// tokensThrough returns the tokens of the messages up to one, without compaction.
func (x *Index) tokensThrough(id uint64) uint32 {
	var n uint64
	for i := range x.Entries[:min(id, uint64(len(x.Entries)))] {
		n += uint64(x.Entries[i].Tokens)
	}
	return clamp(n)
}
