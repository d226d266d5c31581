package shown

import (
	"github.com/harnessmesh/harnessmesh/pkg/cache"
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

// messageCache keeps messages, bounded by their bytes.
type messageCache struct {
	messages *cache.Cache[key, *harnessv1.Message]
}

// entryBytes is about what a message needs in memory in addition to its texts.
const entryBytes = 512

func newCache(limit int) messageCache {
	return messageCache{cache.New[key, *harnessv1.Message](limit)}
}

// get returns a message as it is shown; nil if it is not known.
func (c messageCache) get(k key) *harnessv1.Message {
	shown, _ := c.messages.Get(k)
	return shown
}

// put stores a message, unless it alone exceeds the limit.
func (c messageCache) put(k key, shown *harnessv1.Message, bytes int) {
	if bytes += entryBytes; bytes <= c.messages.Limit() {
		c.messages.Add(k, shown, bytes)
	}
}
