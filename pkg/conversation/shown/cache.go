package shown

import (
	"container/list"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// key identifies a message as it is shown. Stored messages never change, so the message
// itself stands for its contents.
type key struct {
	message *harnessv1.Message
	model   string
	limit   uint32
	refs    bool
}

// cache keeps messages, bounded by their bytes. Those that were not used for longest are
// dropped first.
type cache struct {
	limit int

	mu    sync.Mutex
	bytes int
	order *list.List // of *shownMessage, the newest use first
	byKey map[key]*list.Element
}

type shownMessage struct {
	key   key
	shown *harnessv1.Message
	bytes int
}

// entryBytes is about what a message needs in memory in addition to its texts.
const entryBytes = 512

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), byKey: map[key]*list.Element{}}
}

// get returns a message as it is shown; nil if it is not known.
func (c *cache) get(k key) *harnessv1.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[k]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*shownMessage).shown
}

func (c *cache) put(k key, shown *harnessv1.Message, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes += entryBytes
	if _, ok := c.byKey[k]; ok || bytes > c.limit {
		return
	}
	c.byKey[k] = c.order.PushFront(&shownMessage{k, shown, bytes})
	for c.bytes += bytes; c.bytes > c.limit; {
		oldest := c.order.Remove(c.order.Back()).(*shownMessage)
		delete(c.byKey, oldest.key)
		c.bytes -= oldest.bytes
	}
}
