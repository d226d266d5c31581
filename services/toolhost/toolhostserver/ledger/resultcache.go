package ledger

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/cache"
)

// resultOverhead is about what a cached result needs in addition to its fields, bytes.
const resultOverhead = 512

// resultCache keeps the newest results up to a total size.
type resultCache struct {
	results *cache.Cache[string, Response]
}

func newResultCache(limit int) resultCache {
	return resultCache{cache.New[string, Response](limit)}
}

// get returns the result of a call, nil if it is not cached.
func (c resultCache) get(key string) Response {
	resp, _ := c.results.Get(key)
	return resp
}

// add stores the result of a call, unless it alone exceeds the limit.
func (c resultCache) add(key string, resp Response) {
	if size := resultSize(key, resp); size <= c.results.Limit() {
		c.results.Add(key, resp, size)
	}
}

func resultSize(key string, resp Response) int {
	return len(key) + proto.Size(resp) + resultOverhead
}
