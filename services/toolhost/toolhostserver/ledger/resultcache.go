package ledger

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/cache"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// resultOverhead is about what a cached result needs in addition to its fields, bytes.
const resultOverhead = 512

// resultCache keeps the newest results up to a total size.
type resultCache struct {
	results *cache.Cache[string, keptResult]
}

// keptResult is the result of a call.
type keptResult struct {
	response Response
	// call describes the call; nil for others, such as checks.
	call *harnessv1.LedgerCall
}

func newResultCache(limit int) resultCache {
	return resultCache{cache.New[string, keptResult](limit)}
}

// get returns the result of a call; its response is nil if it is not cached.
func (c resultCache) get(key string) keptResult {
	r, _ := c.results.Get(key)
	return r
}

// add stores the result of a call, unless it alone exceeds the limit.
func (c resultCache) add(key string, r keptResult) {
	if size := resultSize(key, r); size <= c.results.Limit() {
		c.results.Add(key, r, size)
	}
}

func resultSize(key string, r keptResult) int {
	return len(key) + proto.Size(r.response) + proto.Size(r.call) + resultOverhead
}
