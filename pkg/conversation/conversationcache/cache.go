// Package conversationcache keeps the folded conversations of runs in memory, so that
// at a run's next step only the records that it has not seen are read.
package conversationcache

import (
	"context"
	"fmt"
	"math"

	"github.com/harnessmesh/harnessmesh/pkg/cache"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// incarnation identifies a run: a deleted run may be started again under its name.
type incarnation struct {
	run   runlog.Run
	first uint64
}

// Cache keeps folded conversations, bounded in bytes. At a run's next
// turn only the records that it has not seen are read.
type Cache struct {
	log    runlog.Reader
	limit  uint64
	folded *cache.Cache[incarnation, *entry]
}

type entry struct {
	key          incarnation
	conversation conversation.Conversation
	// sequence of the last record that was folded.
	sequence uint64
}

// DefaultBytes bounds the conversations of a worker that shares no cache.
const DefaultBytes = 64 << 20

// New returns a cache of at most limit bytes over a log.
func New(log runlog.Reader, limit uint64) *Cache {
	return &Cache{log: log, limit: limit, folded: cache.New[incarnation, *entry](memory(limit))}
}

// Limit returns the bytes of the conversations that are kept at most.
func (c *Cache) Limit() uint64 { return c.limit }

// Load returns the conversation up to and including the record tail. The caller has
// the run's step, so usually no other caller loads the same run. If another one has
// folded further, the conversation is folded again from the log and not kept.
func (c *Cache) Load(ctx context.Context, first uint64, tail runlog.Entry) (*conversation.Conversation, error) {
	key := incarnation{tail.Run, first}
	have := c.take(key)
	keep := true
	if have.sequence > tail.Sequence {
		have, keep = entry{key: key}, false
	}
	entries, err := runlog.BackAppended(ctx, c.log, tail, have.sequence)
	if err != nil {
		return nil, err
	}
	have.fold(entries)
	if !have.whole() { // a link that leads past something: every record is read
		have = entry{key: key}
		if entries, err = runlog.Back(ctx, c.log, tail, 0); err != nil {
			return nil, err
		}
		if have.fold(entries); !have.whole() {
			return nil, fmt.Errorf("the conversation of %s up to version %d is not whole: it has %d messages", tail.Run, tail.Header.Version, len(have.conversation.Messages))
		}
	}
	have.conversation.Version, have.sequence = tail.Header.Version, tail.Sequence
	if keep {
		c.put(have)
	}
	return &have.conversation, nil
}

func (f *entry) fold(entries []runlog.Entry) {
	for _, e := range entries {
		f.conversation.Fold(e.Record)
	}
}

// whole reports whether no message is missing: they are numbered from 1.
func (f *entry) whole() bool {
	n := len(f.conversation.Messages)
	return n == 0 || f.conversation.Messages[n-1].GetId() == uint64(n)
}

// take removes a conversation from the cache, so that only one caller changes it.
func (c *Cache) take(key incarnation) entry {
	if f, ok := c.folded.Take(key); ok {
		return *f
	}
	return entry{key: key}
}

// put stores a conversation, unless a newer one is there: then the caller's worker is stale.
func (c *Cache) put(have entry) {
	newer := func(old *entry) bool { return have.sequence > old.sequence }
	c.folded.Replace(have.key, &have, memory(have.conversation.Bytes), newer)
}

// memory returns bytes as package cache counts them.
func memory(bytes uint64) int { return int(min(bytes, math.MaxInt)) }
