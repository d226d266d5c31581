package turnserver

import (
	"container/list"
	"context"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// incarnation names one life of a run: a deleted run may be made again.
type incarnation struct {
	run   runlog.Run
	first uint64
}

// conversations keeps folded conversations, bounded in bytes. At a run's next
// turn only the records that it has not seen are read.
type conversations struct {
	log   runlog.Log
	limit uint64

	mu    sync.Mutex
	used  uint64
	order *list.List // newest use first
	at    map[incarnation]*list.Element
}

type folded struct {
	key          incarnation
	conversation conversation.Conversation
}

func newConversations(log runlog.Log, limit uint64) *conversations {
	return &conversations{log: log, limit: limit, order: list.New(), at: map[incarnation]*list.Element{}}
}

// load returns the conversation up to and with the record tail. The caller has
// the run's step, so nobody else loads the same run for work; should someone
// have folded further, the conversation is folded anew and not kept.
func (c *conversations) load(ctx context.Context, first uint64, tail runlog.Entry) (*conversation.Conversation, error) {
	key := incarnation{tail.Run, first}
	have := c.take(key)
	keep := true
	if have.Version > tail.Header.Version {
		have, keep = conversation.Conversation{}, false
	}
	entries, err := runlog.Back(ctx, c.log, tail, have.Version)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		have.Fold(e.Record)
	}
	if keep {
		c.put(key, have)
	}
	return &have, nil
}

// take removes a conversation from the cache, so that one owner changes it.
func (c *conversations) take(key incarnation) conversation.Conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.at[key]
	if !ok {
		return conversation.Conversation{}
	}
	c.order.Remove(el)
	delete(c.at, key)
	f := el.Value.(*folded)
	c.used -= f.conversation.Bytes
	return f.conversation
}

func (c *conversations) put(key incarnation, have conversation.Conversation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.at[key]; ok { // a stale worker was here; the newer one stays
		if old.Value.(*folded).conversation.Version >= have.Version {
			return
		}
		c.used -= old.Value.(*folded).conversation.Bytes
		c.order.Remove(old)
	}
	c.at[key] = c.order.PushFront(&folded{key: key, conversation: have})
	c.used += have.Bytes
	for c.used > c.limit && c.order.Len() > 1 {
		oldest := c.order.Remove(c.order.Back()).(*folded)
		delete(c.at, oldest.key)
		c.used -= oldest.conversation.Bytes
	}
}
