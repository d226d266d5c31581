package jetstream

import (
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/cache"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// recordCache stores the records that this process wrote or read last, bounded in bytes. It
// is never stale, because a stored record does not change, and its sequence is not
// reused unless the bus loses it: then lose drops it. A record that this process erases
// is dropped. One that another process erased
// is not read any more, because no stored record links to it. Records are shared and
// must not be changed.
type recordCache struct {
	records *cache.Cache[place, runlog.Entry]

	// mu is locked before the lock of records.
	mu sync.Mutex
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

func newCache(limit int) *recordCache {
	return &recordCache{records: cache.New[place, runlog.Entry](limit), erased: map[runlog.Run]uint64{}}
}

func (c *recordCache) get(partition int, sequence uint64) (runlog.Entry, bool) {
	return c.records.Get(place{partition, sequence})
}

// erase refuses records of a run up to sequence from now on: a replica that lags still
// returns them.
func (c *recordCache) erase(run runlog.Run, sequence uint64) {
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
func (c *recordCache) drop(partition int, sequence uint64) {
	c.records.Take(place{partition, sequence})
}

// lose removes the records of a partition above a sequence, which the bus has lost.
func (c *recordCache) lose(partition int, above uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records.TakeAll(func(at place) bool { return at.partition == partition && at.sequence > above })
	// An erasure may be lost too.
	for run, sequence := range c.erased {
		if sequence > above {
			c.erased[run] = 0
		}
	}
}

func (c *recordCache) put(e runlog.Entry, partition, size int) {
	// A decoded record takes a few times its encoded size, and the bookkeeping some
	// more.
	const overhead = 512
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Sequence > c.erased[e.Run] {
		c.records.Add(place{partition, e.Sequence}, e, size+overhead)
	}
}
