package conversationcache

import (
	"container/list"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Views keeps the views of conversations, bounded in messages. A view is used by one
// caller at a time: Take removes it, and Put stores it again.
type Views struct {
	limit int

	mu    sync.Mutex
	used  int
	order *list.List // of *storedView, newest use first
	at    map[incarnation]*list.Element
}

type storedView struct {
	key      incarnation
	view     *view.View
	messages int
}

// NewViews returns a cache of views of at most limit messages together.
func NewViews(limit int) *Views {
	return &Views{limit: limit, order: list.New(), at: map[incarnation]*list.Element{}}
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
	stored := c.order.Remove(el).(*storedView)
	delete(c.at, stored.key)
	c.used -= stored.messages
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
		c.used -= c.order.Remove(old).(*storedView).messages
	}
	stored := &storedView{key: key, view: v, messages: len(v.Index.Entries)}
	c.at[key] = c.order.PushFront(stored)
	for c.used += stored.messages; c.used > c.limit && c.order.Len() > 1; {
		oldest := c.order.Remove(c.order.Back()).(*storedView)
		delete(c.at, oldest.key)
		c.used -= oldest.messages
	}
}
