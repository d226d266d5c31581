package jetstream

import (
	"container/list"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// cache stores the records that this process wrote or read last, bounded in bytes. It
// is never stale, because a stored record does not change, and its sequence is not
// reused unless the bus loses it: then lose drops it. A record that this process erases
// is dropped. One that another process erased
// is not read any more, because no stored record links to it. Records are shared and
// must not be changed.
type cache struct {
	mu    sync.Mutex
	limit int
	used  int
	order *list.List // most recently used first
	at    map[place]*list.Element
	// erased maps recently erased runs to their last sequence, in the order of the
	// slice.
	erased map[runlog.Run]uint64
	names  []runlog.Run
}

// erasedRuns bounds the erased runs that are remembered.
const erasedRuns = 1024

type place struct {
	partition int
	sequence  uint64
}

type cacheEntry struct {
	place place
	entry runlog.Entry
	size  int
}

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), at: map[place]*list.Element{}, erased: map[runlog.Run]uint64{}}
}

func (c *cache) get(partition int, sequence uint64) (runlog.Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.at[place{partition, sequence}]
	if !ok {
		return runlog.Entry{}, false
	}
	c.order.MoveToFront(el)
	return el.Value.(*cacheEntry).entry, true
}

// erase refuses records of a run up to sequence from now on: a replica that lags still
// returns them.
func (c *cache) erase(run runlog.Run, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.erased[run]; !ok {
		c.names = append(c.names, run)
	}
	c.erased[run] = max(c.erased[run], sequence)
	if len(c.names) > erasedRuns {
		delete(c.erased, c.names[0])
		c.names = c.names[1:]
	}
}

// drop removes a record that was erased.
func (c *cache) drop(partition int, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.at[place{partition, sequence}]; ok {
		c.remove(el)
	}
}

// remove removes an entry. The caller has locked c.mu.
func (c *cache) remove(el *list.Element) {
	removed := c.order.Remove(el).(*cacheEntry)
	delete(c.at, removed.place)
	c.used -= removed.size
}

// lose removes the records of a partition above a sequence, which the bus has lost.
func (c *cache) lose(partition int, above uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, el := range c.at {
		if at.partition == partition && at.sequence > above {
			c.remove(el)
		}
	}
	// An erasure may be lost too.
	for run, sequence := range c.erased {
		if sequence > above {
			c.erased[run] = 0
		}
	}
}

func (c *cache) put(e runlog.Entry, partition, size int) {
	// A decoded record takes a few times its encoded size, and the bookkeeping some
	// more.
	const overhead = 512
	key := place{partition, e.Sequence}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.at[key]; ok || e.Sequence <= c.erased[e.Run] {
		return
	}
	c.at[key] = c.order.PushFront(&cacheEntry{place: key, entry: e, size: size + overhead})
	c.used += size + overhead
	for c.used > c.limit && c.order.Len() > 1 {
		c.remove(c.order.Back())
	}
}
