package conversationcache

import (
	"github.com/harnessmesh/harnessmesh/pkg/cache"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// IndexBytes is about what a message needs in the index of a view, in addition to the
// message.
const IndexBytes = 100

// Views keeps the views of conversations, bounded in bytes: those of the messages that the
// views keep, and those of their indexes. A view is used by one caller at a time: Take
// removes it, and Put stores it again.
type Views struct {
	views *cache.Cache[incarnation, *view.View]
}

// NewViews returns a cache of views of at most limit bytes together.
func NewViews(limit uint64) *Views {
	return &Views{cache.New[incarnation, *view.View](memory(limit))}
}

// Take returns the view of a run, for a conversation of it: a new one if there is none, or
// if the stored one has seen more messages.
func (c *Views) Take(run runlog.Run, first uint64, of *conversation.Conversation) *view.View {
	stored, ok := c.views.Take(incarnation{run, first})
	if !ok || len(stored.Index.Entries) > len(of.Messages) {
		return &view.View{}
	}
	return stored
}

// Put stores a view, also instead of one that another caller has made meanwhile. The caller
// must not use it afterwards.
func (c *Views) Put(run runlog.Run, first uint64, v *view.View) {
	c.views.Put(incarnation{run, first}, v, memory(v.Bytes())+IndexBytes*len(v.Index.Entries))
}
