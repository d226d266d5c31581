package jetstream

import (
	"container/list"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// cache keeps the newest records that this process wrote or read, bounded in
// bytes. It is safe because a stored record never changes, and its sequence is never
// another record's. What this process erases is dropped; where another one has
// erased it, nothing leads there any more. Its records are shared; nobody may
// change them.
type cache struct {
	mu    sync.Mutex
	limit int
	used  int
	order *list.List // newest use first
	at    map[place]*list.Element
	// erased are the last sequences of runs that were erased of late, the names of
	// those in their order beside it.
	erased map[runlog.Run]uint64
	names  []runlog.Run
}

// erasedRuns is how many erased runs are remembered.
const erasedRuns = 1024

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
	return el.Value.(*cached).entry, true
}

// erase takes in no records of a run up to sequence from now on: a replica that
// lags still has them.
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

// drop forgets a record that is stored no more.
func (c *cache) drop(partition int, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.at[place{partition, sequence}]; ok {
		dropped := c.order.Remove(el).(*cached)
		delete(c.at, dropped.place)
		c.used -= dropped.size
	}
}

func (c *cache) put(e runlog.Entry, partition, size int) {
	// A decoded record takes a few times its encoded size, and the bookkeeping
	// some more.
	const overhead = 512
	key := place{partition, e.Sequence}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.at[key]; ok || e.Sequence <= c.erased[e.Run] {
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
