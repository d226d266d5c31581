package conversationcache

import (
	"container/list"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Views keeps the views of conversations, bounded in messages and in the bytes of those
// that the views keep. A view is used by one caller at a time: Take removes it, and Put
// stores it again.
type Views struct {
	limit    int
	maxBytes uint64

	mu    sync.Mutex
	used  int
	bytes uint64
	order *list.List // of *storedView, newest use first
	at    map[incarnation]*list.Element
}

type storedView struct {
	key      incarnation
	view     *view.View
	messages int
	bytes    uint64
}

// NewViews returns a cache of views of at most limit messages and bytes together.
func NewViews(limit int, bytes uint64) *Views {
	return &Views{limit: limit, maxBytes: bytes, order: list.New(), at: map[incarnation]*list.Element{}}
}

// Take returns the view of a run, for a conversation of it: a new one if there is none, or
// if the stored one has seen more messages.
func (c *Views) Take(run runlog.Run, first uint64, of *conversation.Conversation) *view.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.at[incarnation{run, first}]
	if !ok {
		return &view.View{}
	}
	stored := c.remove(el)
	if stored.messages > len(of.Messages) {
		return &view.View{}
	}
	return stored.view
}

// Put stores a view. The caller must not use it afterwards.
func (c *Views) Put(run runlog.Run, first uint64, v *view.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := incarnation{run, first}
	if old, ok := c.at[key]; ok { // another caller has made one meanwhile
		c.remove(old)
	}
	stored := &storedView{key: key, view: v, messages: len(v.Index.Entries), bytes: v.Bytes()}
	c.at[key] = c.order.PushFront(stored)
	c.used, c.bytes = c.used+stored.messages, c.bytes+stored.bytes
	for (c.used > c.limit || c.bytes > c.maxBytes) && c.order.Len() > 1 {
		c.remove(c.order.Back())
	}
}

// remove removes a view. The caller holds mu.
func (c *Views) remove(el *list.Element) *storedView {
	stored := c.order.Remove(el).(*storedView)
	delete(c.at, stored.key)
	c.used, c.bytes = c.used-stored.messages, c.bytes-stored.bytes
	return stored
}
