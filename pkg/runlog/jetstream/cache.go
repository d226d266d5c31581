package jetstream

import (
	"container/list"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// cache keeps the newest records that this process wrote or read, bounded in
// bytes. It is safe because a stored record never changes: there is nothing to
// invalidate. Its records are shared; nobody may change them.
type cache struct {
	mu    sync.Mutex
	limit int
	used  int
	order *list.List // newest use first
	at    map[place]*list.Element
}

type place struct {
	partition int
	sequence  uint64
}

type cached struct {
	place place
	entry runlog.Entry
	size  int
}

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), at: map[place]*list.Element{}}
}

func (c *cache) get(partition int, sequence uint64) (runlog.Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.at[place{partition, sequence}]
	if !ok {
		return runlog.Entry{}, false
	}
	c.order.MoveToFront(el)
	return el.Value.(*cached).entry, true
}

func (c *cache) put(e runlog.Entry, partition, size int) {
	// A decoded record takes a few times its encoded size, and the bookkeeping
	// some more.
	const overhead = 512
	key := place{partition, e.Sequence}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.at[key]; ok {
		return
	}
	c.at[key] = c.order.PushFront(&cached{place: key, entry: e, size: size + overhead})
	c.used += size + overhead
	for c.used > c.limit && c.order.Len() > 1 {
		oldest := c.order.Remove(c.order.Back()).(*cached)
		delete(c.at, oldest.place)
		c.used -= oldest.size
	}
}
